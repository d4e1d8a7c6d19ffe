package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// reap is process 1. It starts guestd serve and collects whatever is orphaned.
// A guest without guestd serve is of no use to anybody: it powers off, and the
// console log says why.
func reap() error {
	child, err := os.StartProcess(program, []string{"guestd", "serve"}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Env:   os.Environ(),
	})
	if err != nil {
		return fmt.Errorf("starting guestd serve: %w", err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for processes: %w", err)
		case pid == child.Pid:
			return fmt.Errorf("guestd serve ended: exit status %d, signal %d", status.ExitStatus(), status.Signal())
		}
	}
}
