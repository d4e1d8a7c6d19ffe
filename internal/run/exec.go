package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

const (
	// outputLimit bounds what a command may print: a report of 10,000 logical
	// volumes is about 4 MiB.
	outputLimit = 64 << 20
	stderrLimit = 4 << 10
	// waitDelay is how long the pipes of a killed command may stay open, held by
	// a process that escaped its process group.
	waitDelay = 2 * time.Second
)

// Exec runs commands on this machine. The zero value is ready to use.
type Exec struct {
	// Observer may be nil.
	Observer Observer
	// Now defaults to time.Now.
	Now func() time.Time
}

var _ Runner = Exec{}

// Query implements Runner.
func (e Exec) Query(ctx context.Context, c Command) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.Program, c.Args...)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = waitDelay
	out, err := e.run(c, cmd)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%s stopped: %w", c.Operation, context.Cause(ctx))
	}
	return out, err
}

// Change implements Runner.
func (e Exec) Change(c Command) ([]byte, error) {
	return e.run(c, exec.Command(c.Program, c.Args...)) //nolint:noctx // a change is never killed
}

func (e Exec) run(c Command, cmd *exec.Cmd) ([]byte, error) {
	var stdout limited
	var stderr tail
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if c.In != nil {
		cmd.Stdin = c.In
	}
	if c.Out != nil {
		cmd.Stdout = c.Out
	}
	cmd.Env = slices.Concat(os.Environ(), []string{"LC_ALL=C"}, c.Env)
	// Each command has its own process group. So a query is killed with all its children,
	// and a signal to Berth's group does not reach a change.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	start := e.now()
	err := classify(c, cmd.Run(), stderr.String())
	if err == nil && stdout.overflow {
		err = fmt.Errorf("running %s: it printed more than %d bytes", c.Operation, outputLimit)
	}
	if e.Observer != nil {
		e.Observer.Observe(c, e.now().Sub(start), err)
	}
	return stdout.kept.Bytes(), err
}

func (e Exec) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

func classify(c Command, err error, stderr string) error {
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &ExitError{Command: c, Code: exit.ExitCode(), Stderr: stderr}
	}
	return fmt.Errorf("running %s: %w", c.Operation, err)
}

// limited keeps the first outputLimit bytes. It does not embed the buffer, whose
// ReadFrom would take everything.
type limited struct {
	kept     bytes.Buffer
	overflow bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.kept.Len()+len(p) > outputLimit {
		l.overflow = true
		return len(p), nil
	}
	return l.kept.Write(p)
}

// tail keeps the last stderrLimit bytes: the reason comes last.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - stderrLimit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }
