package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"berth.dev/berth/lab/internal/process"
)

// Dial connects to a TCP address inside the namespace at path, or in the
// current one if path is empty.
func Dial(ctx context.Context, path, address string) (net.Conn, error) {
	var dialer net.Dialer
	if path == "" {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("connecting: %w", err)
		}
		return conn, nil
	}
	// The address must be numeric: then the dialer makes its one socket on the
	// calling thread, and only that thread is in the namespace.
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	var conn net.Conn
	err := process.InNetNS(path, func() (err error) {
		conn, err = dialer.DialContext(ctx, "tcp", address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return conn, nil
}

// Forward listens on an address of the current namespace and carries each
// connection to target inside the namespace at path, until ctx ends. A target
// that refuses closes the connection it was meant for, nothing else.
func Forward(ctx context.Context, listen, path, target string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listening for the forwarder: %w", err)
	}
	return forward(ctx, listener, path, target)
}

func forward(ctx context.Context, listener net.Listener, path, target string) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	defer listener.Close()
	for {
		client, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accepting connection: %w", err)
		}
		if err != nil {
			continue // a client that went away before it was accepted
		}
		connections.Go(func() { carry(ctx, client, path, target) })
	}
}

// carry copies both ways until both sides are done. It passes on the end of one
// direction alone, since the other may still have data to send.
func carry(ctx context.Context, client net.Conn, path, target string) {
	defer client.Close()
	server, err := Dial(ctx, path, target)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { client.Close(); server.Close() })
	defer stop()
	var directions sync.WaitGroup
	directions.Go(func() { copyHalf(server, client) })
	directions.Go(func() { copyHalf(client, server) })
	directions.Wait()
}

func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if tcp, ok := to.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
		return
	}
	to.Close()
	from.Close()
}
