// Command relay makes a Unix socket reachable from other machines: it passes on
// every connection that it accepts at an address. The conformance suite runs beside
// the agent. Through the relay it reaches the controller's socket on another node.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: relay ADDRESS SOCKET")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := relay(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func relay(ctx context.Context, address, socket string) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		from, err := listener.Accept()
		if err != nil {
			return err
		}
		var dialer net.Dialer
		to, err := dialer.DialContext(ctx, "unix", socket)
		if err != nil {
			from.Close()
			return err
		}
		go pass(to, from)
		go pass(from, to)
	}
}

// pass copies until one side ends, and then ends both.
func pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(to, from) // an error is the end as well
}
