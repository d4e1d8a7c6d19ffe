package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/process"
)

// environment of every program of a node, as in a guest.
var environment = []string{
	"PATH=" + wire.ToolsDir + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/root", "LANG=C.UTF-8", "TERM=linux",
}

// Exec runs a program in the node and returns its exit code. For a program that does
// not exist it returns a shell's exit code.
func (m *Machine) Exec(ctx context.Context, r guest.ExecRequest) (int, error) {
	switch {
	case len(r.Argv) == 0:
		return 0, errors.New("running a program on a node: no program given")
	case m.Power() == guest.Off:
		return 0, fmt.Errorf("running %s on %s: it is powered off", r.Argv[0], m.Spec.Name)
	case m.Power() == guest.Paused:
		return 0, fmt.Errorf("running %s on %s: it is paused", r.Argv[0], m.Spec.Name)
	case r.Terminal != nil:
		return 0, fmt.Errorf("a native node has no terminals: run nsenter --target %d --all for a shell", m.Process.PID)
	}
	dir := r.Dir
	if dir == "" {
		dir = "/root"
	}
	// env looks the program up in the node, where its path may be another file than here.
	args := append([]string{"--ignore-environment", "--chdir=" + dir}, environment...)
	args = append(append(args, r.Env...), r.Argv...)
	err := process.Run(ctx, process.Command{
		Path: "/usr/bin/env", Args: args, Beside: m.Process.PID, Stdin: r.Stdin, Stdout: discard(r.Stdout), Log: discard(r.Stderr),
	})
	if exit, ok := errors.AsType[*process.ExitError](err); ok && exit.Code >= 0 {
		return exit.Code, nil
	}
	if err != nil {
		return 0, fmt.Errorf("running %s on %s: %w", r.Argv[0], m.Spec.Name, err)
	}
	return 0, nil
}

func discard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// Output runs a program in the node and returns its standard output. If the program
// fails, the error contains its standard error.
func (m *Machine) Output(ctx context.Context, argv ...string) ([]byte, error) {
	var out bytes.Buffer
	err := m.mustExec(ctx, guest.ExecRequest{Argv: argv, Stdout: &out})
	return out.Bytes(), err
}

// Pipe runs a program in the node with an input and discards its output.
func (m *Machine) Pipe(ctx context.Context, stdin io.Reader, argv ...string) error {
	return m.mustExec(ctx, guest.ExecRequest{Argv: argv, Stdin: stdin})
}

func (m *Machine) mustExec(ctx context.Context, r guest.ExecRequest) error {
	var stderr bytes.Buffer
	r.Stderr = &stderr
	code, err := m.Exec(ctx, r)
	if err == nil && code != 0 {
		err = fmt.Errorf("running %s on %s: exit code %d: %s", r.Argv[0], m.Spec.Name, code, strings.TrimSpace(stderr.String()))
	}
	return err
}
