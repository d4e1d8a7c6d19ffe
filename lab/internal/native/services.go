package native

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"berth.dev/berth/lab/internal/guest/wire"
)

const (
	restartDelay = time.Second // at least, between two starts
	socketLimit  = 2 * time.Minute
	// specInNode is the record's path in the node, which does not have the record's own path.
	specInNode = wire.ToolsDir + "/machine.json"
)

func openInside() (*Machine, error) {
	data, err := os.ReadFile(specInNode)
	if err != nil {
		return nil, fmt.Errorf("reading what the node is: %w", err)
	}
	m := &Machine{}
	if err := json.Unmarshal(data, &m.record); err != nil {
		return nil, fmt.Errorf("reading what the node is: %w", err)
	}
	return m, nil
}

// startServices starts the services in order, each when the one before is ready.
func (m *Machine) startServices(ctx context.Context) error {
	for _, s := range m.Spec.Services {
		log, err := os.OpenFile(filepath.Join(logsInNode, s.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		go keepRunning(ctx, s, log)
		if err := awaitSocket(ctx, s.Socket); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
	}
	return nil
}

// keepRunning starts a service again whenever it ends, like any init system.
func keepRunning(ctx context.Context, s wire.Service, log *os.File) {
	delay := time.NewTicker(restartDelay)
	defer delay.Stop()
	for {
		cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
		cmd.Env = append(os.Environ(), s.Env...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
		err := cmd.Run()
		fmt.Fprintf(os.Stderr, "service %s ended (%v), starting it again\n", s.Name, err)
		select {
		case <-delay.C:
		case <-ctx.Done():
			return
		}
	}
}

func awaitSocket(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, socketLimit)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
