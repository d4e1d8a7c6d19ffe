package native

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/guest/reaper"
)

// self is this program's file, also where its path is another file or none.
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
	return reaper.Run(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), []string{"lab", "node-serve"}, &os.ProcAttr{
		Dir: "/", Env: environment, Files: []*os.File{nil, os.Stdout, os.Stderr},
	})
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
