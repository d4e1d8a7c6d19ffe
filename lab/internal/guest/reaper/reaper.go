// Package reaper is the work of process 1 of a node, in a guest and in a namespace.
package reaper

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Run starts a program and collects every orphaned process until the program ends.
// It returns only with an error. Reaping takes any child, so code that wants to wait
// for children of its own must be in that other program.
func Run(program string, args []string, attributes *os.ProcAttr) error {
	child, err := os.StartProcess(program, args, attributes)
	if err != nil {
		return fmt.Errorf("starting %v: %w", args, err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for processes: %w", err)
		case pid == child.Pid:
			return fmt.Errorf("%v ended: exit status %d, signal %d", args, status.ExitStatus(), status.Signal())
		}
	}
}
