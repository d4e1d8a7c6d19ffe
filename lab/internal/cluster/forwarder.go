package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/process"
)

const forwarder = "forwarder"

// startForwarder makes the API server reachable on 127.0.0.1 and writes the
// kubeconfig that says so. The port stays the same for the cluster's life.
func (p ControlPlane) startForwarder(ctx context.Context, config controlplane.Config) error {
	c := p.cluster
	if rec, ok := c.state.Process(forwarder); ok && rec.Alive() {
		return nil
	}
	port := c.state.get().Port
	if port == 0 {
		var err error
		if port, err = freePort(ctx); err != nil {
			return err
		}
		if err := c.state.update(func(s *contents) { s.Port = port }); err != nil {
			return err
		}
	}
	local := fmt.Sprintf("127.0.0.1:%d", port)
	rec, err := process.Start(ctx, process.Spec{
		Name: forwarder,
		Path: c.lab.Self,
		Args: []string{"forward", "--listen", local, "--netns", config.NetNS, "--target", fmt.Sprintf("%s:%d", config.Address, controlplane.Port)},
		Log:  c.paths.forwarderLog(),
	})
	if err != nil {
		return err
	}
	if err := c.state.RecordProcess(rec); err != nil {
		return err
	}
	if err := awaitForwarder(ctx, local, rec); err != nil {
		return err
	}
	kubeconfig, err := config.Authority.Kubeconfig("admin", "https://"+local, controlplane.Admin)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.paths.kubeconfig(), kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	return nil
}

// awaitForwarder returns when the forwarder accepts connections.
func awaitForwarder(ctx context.Context, address string, rec process.Record) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if !rec.Alive() {
			return fmt.Errorf("the forwarder on %s ended: read its log %s", address, rec.Log)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the forwarder on %s: %w", address, err)
		case <-ticker.C:
		}
	}
}

// freePort asks the kernel for a port that no process listens on. Another process may
// take it before the forwarder does; then the forwarder ends and says so.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
