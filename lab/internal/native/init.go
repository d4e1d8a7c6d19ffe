package native

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// self leads to this program also where its path leads elsewhere.
const self = "/proc/self/exe"

// Init is process 1 of the node in dir. It returns only with an error, and the
// node ends with it.
func Init(dir string) error {
	if os.Getpid() != 1 {
		return errors.New("process 1 of a node is started by `lab up`, and by nobody else")
	}
	if line, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil || line != "go\n" {
		return fmt.Errorf("the start was given up: %w", err)
	}
	m, err := Open(dir)
	if err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(m.Spec.Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	program, err := os.Open(self) // its path is not in the node
	if err != nil {
		return err
	}
	if err := m.mountRoot(); err != nil {
		return err
	}
	return reap(program)
}

// reap starts the services and collects whatever is orphaned. They are started by
// another process, since reaping takes any child.
func reap(program *os.File) error {
	child, err := os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), []string{"lab", "node-serve"}, &os.ProcAttr{
		Dir: "/", Env: environment, Files: []*os.File{nil, os.Stdout, os.Stderr},
	})
	if err != nil {
		return fmt.Errorf("starting the services: %w", err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for processes: %w", err)
		case pid == child.Pid:
			return fmt.Errorf("the services ended: exit status %d, signal %d", status.ExitStatus(), status.Signal())
		}
	}
}

// Serve runs a node's services until ctx ends.
func Serve(ctx context.Context) error {
	m, err := openInside()
	if err != nil {
		return err
	}
	if err := m.startServices(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(logsInNode, readyFile), []byte("ready\n"), 0o644); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
