package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

func main() {
	ctx := context.Background()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve(ctx)
	case os.Getpid() != 1:
		err = errors.New("guestd is started by the kernel of a guest, and by nobody else")
	case len(os.Args) == 2 && os.Args[1] == "init":
		err = reap()
	default:
		err = enterRoot(ctx)
	}
	if err == nil {
		return
	}
	logf("fatal: %v", err)
	if os.Getpid() == 1 {
		powerOff()
	}
	os.Exit(1)
}

// logf writes a line to the console.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "guestd: "+format+"\n", args...)
}

// poll calls done now and then until it returns nil, and gives up with its last
// error after timeout.
func poll(ctx context.Context, interval, timeout time.Duration, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", timeout, err)
		}
	}
}

// powerOff ends the guest; it does not return.
func powerOff() {
	syscall.Sync()
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the kernel is stopping
}
