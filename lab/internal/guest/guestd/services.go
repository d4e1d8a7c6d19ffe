package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"berth.dev/berth/lab/internal/guest/wire"
)

const (
	restartDelay = time.Second // at least, between two starts
	readyTimeout = 2 * time.Minute
)

// runServices starts the services in order and keeps them running. Their
// output goes to files on the host, so that it survives any end of the guest.
func runServices(ctx context.Context, services []wire.Service) {
	for _, s := range services {
		log := openLog(s.Name)
		if s.Once {
			if err := runService(ctx, s, log); err != nil {
				logf("service %s: %v", s.Name, err)
			}
			continue
		}
		go keepRunning(ctx, s, log)
		if err := waitForSocket(ctx, s.Socket, readyTimeout); err != nil {
			logf("service %s: %v", s.Name, err)
		}
	}
}

// openLog opens the log of a service, or the console if there is none.
func openLog(service string) *os.File {
	port, err := openPort(wire.LogPortPrefix + service)
	if err == nil {
		port, err = logTo(port)
	}
	if err != nil {
		logf("service %s: %v", service, err)
		return os.Stderr
	}
	return port
}

// keepRunning starts a service again whenever it ends, like any init system.
func keepRunning(ctx context.Context, s wire.Service, log *os.File) {
	delay := time.NewTicker(restartDelay)
	defer delay.Stop()
	for {
		err := runService(ctx, s, log)
		logf("service %s ended (%v), starting it again", s.Name, err)
		select {
		case <-delay.C:
		case <-ctx.Done():
			return
		}
	}
}

func runService(ctx context.Context, s wire.Service, log *os.File) error {
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	return cmd.Run()
}

func waitForSocket(ctx context.Context, path string, timeout time.Duration) error {
	if path == "" {
		return nil
	}
	err := poll(ctx, 50*time.Millisecond, timeout, func() error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return fmt.Errorf("not ready %w", err)
	}
	return nil
}
