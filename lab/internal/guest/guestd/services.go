package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"berth.dev/berth/lab/internal/guest/wire"
)

const (
	restartDelay = time.Second
	readyTimeout = 2 * time.Minute
)

// runServices starts the services in order and keeps them running.
func runServices(services []wire.Service) {
	for _, s := range services {
		log, err := openLog(s.Name)
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

// openLog returns the virtio port that ends in the service's log file on the
// host, so that the log survives any end of the guest.
func openLog(service string) (*os.File, error) {
	ports, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	want := wire.LogPortPrefix + service + "\n"
	for _, path := range ports {
		if name, err := os.ReadFile(path); err == nil && string(name) == want {
			return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(path)), os.O_WRONLY, 0)
		}
	}
	return nil, fmt.Errorf("no port for its log")
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
