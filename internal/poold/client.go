package poold

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/signal"
)

const (
	// A call fails at once while poold is away. In the background the client tries to
	// connect again, with a pause between minRetry and maxRetry.
	minRetry = 50 * time.Millisecond
	maxRetry = time.Second
	// dialTimeout is for a poold that accepted the connection and does not answer.
	dialTimeout = 2 * time.Second
	// maxMessage in bytes has room for a report of some 100,000 volumes.
	maxMessage = 64 << 20
)

// Client is a Node in another process. While that process is away every call
// returns ErrUnavailable at once. The client reconnects by itself.
type Client struct {
	socket  string
	conn    *grpc.ClientConn
	rpc     pb.PooldClient
	changed signal.Signal
	stop    context.CancelFunc
	watch   sync.WaitGroup
	// warnings of the latest report.
	warnings atomic.Pointer[[]provision.Warning]
}

var _ Node = (*Client)(nil)

// Dial makes a client of the poold at a socket, which need not be there yet. The
// client lives until Close or the end of ctx.
func Dial(ctx context.Context, socket string) (*Client, error) {
	c := &Client{socket: socket, changed: signal.New()}
	var err error
	if c.conn, err = c.connect(insecure.NewCredentials()); err != nil { // the kernel identifies the peer
		return nil, err
	}
	c.rpc = pb.NewPooldClient(c.conn)
	ctx, c.stop = context.WithCancel(ctx)
	c.watch.Go(func() { c.follow(ctx) })
	return c, nil
}

func (c *Client) connect(as credentials.TransportCredentials) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix:"+c.socket,
		grpc.WithTransportCredentials(as),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: minRetry, Multiplier: 2, MaxDelay: maxRetry},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithIdleTimeout(0),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to poold: %w", err)
	}
	return conn, nil
}

// Close ends the connection.
func (c *Client) Close() error {
	c.stop()
	c.watch.Wait()
	return c.conn.Close()
}

// Healthy returns nil if poold answers and can manage the node's pools.
func (c *Client) Healthy(ctx context.Context) error {
	response, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return fromStatus(ctx, err)
	}
	if s := response.GetStatus(); s != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("%w: poold reports %s", provision.ErrUnavailable, s)
	}
	return nil
}

// Changed implements provision.Provisioner. It also signals when the client has
// reconnected to poold, since it may have missed changes.
func (c *Client) Changed() <-chan struct{} { return c.changed }

// follow keeps a watch open until ctx ends.
func (c *Client) follow(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		stream, err := c.rpc.Watch(ctx, &pb.WatchRequest{}, grpc.WaitForReady(true))
		for err == nil {
			if _, err = stream.Recv(); err == nil {
				c.changed.Set()
			}
		}
		pause.Reset(minRetry)
	}
}
