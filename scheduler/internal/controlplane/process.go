package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Process is a program that runs until it is killed, and in any case no longer
// than the one that started it.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan error
}

// Start starts a program, with variables added to the environment of the caller.
// Its log goes to a new file in dir.
func Start(dir string, environment []string, path string, args ...string) (*Process, error) {
	log, err := os.CreateTemp(dir, filepath.Base(path)+"-*.log")
	if err != nil {
		return nil, fmt.Errorf("making a file for the log of %s: %w", path, err)
	}
	defer func() { _ = log.Close() }()                                                          // the program has its own
	p := &Process{cmd: exec.Command(path, args...), log: log.Name(), done: make(chan error, 1)} //nolint:forbidigo,noctx // it is killed by Kill, not by a context
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	return p, nil
}

// Kill ends the process at once, as a lost machine would, and waits for its end.
// It may be called again.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	p.done <- <-p.done
}

// Ended is whether the process has ended.
func (p *Process) Ended() bool { return len(p.done) > 0 }

// Name is the program's.
func (p *Process) Name() string { return filepath.Base(p.cmd.Path) }

// ID is the process's number.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Tail is the end of the process's log.
func (p *Process) Tail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(data, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-25):], []byte("\n")))
}
