package csi

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Pinger asks the driver at a socket whether it answers, as the livenessprobe
// sidecar does. It keeps one connection.
type Pinger struct {
	conn *grpc.ClientConn
}

// NewPinger makes a pinger of a socket, which need not be there yet.
func NewPinger(socket string) (*Pinger, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connecting to CSI socket: %w", err)
	}
	return &Pinger{conn: conn}, nil
}

// Ping returns nil if the driver answers; it need not be ready.
func (p *Pinger) Ping(ctx context.Context) error {
	if _, err := csi.NewIdentityClient(p.conn).Probe(ctx, &csi.ProbeRequest{}); err != nil {
		return fmt.Errorf("probing CSI socket: %w", err)
	}
	return nil
}

// Close ends the connection.
func (p *Pinger) Close() error { return p.conn.Close() }
