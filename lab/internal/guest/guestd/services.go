package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"berth.dev/berth/lab/internal/guest/wire"
)

const (
	restartDelay = time.Second
	readyTimeout = 2 * time.Minute
)

// runServices starts the services in order and keeps them running. Their
// output goes to files on the host, so that it survives any end of the guest.
func runServices(services []wire.Service) {
	for _, s := range services {
		log, err := openPort(wire.LogPortPrefix + s.Name)
		if err != nil {
			logf("service %s: %v", s.Name, err)
			log = os.Stderr
		}
		if s.Once {
			if err := runService(s, log); err != nil {
				logf("service %s: %v", s.Name, err)
			}
			continue
		}
		go keepRunning(s, log)
		if err := waitForSocket(s.Socket, readyTimeout); err != nil {
			logf("service %s: %v", s.Name, err)
		}
	}
}

// keepRunning starts a service again whenever it ends, like any init system.
func keepRunning(s wire.Service, log *os.File) {
	for {
		err := runService(s, log)
		logf("service %s ended (%v), starting it again", s.Name, err)
		time.Sleep(restartDelay)
	}
}

func runService(s wire.Service, log *os.File) error {
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	return cmd.Run()
}

func waitForSocket(path string, timeout time.Duration) error {
	if path == "" {
		return nil
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %s: %w", timeout, err)
		}
	}
}
