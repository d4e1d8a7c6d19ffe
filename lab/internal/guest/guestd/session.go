package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"berth.dev/berth/lab/internal/guest/wire"
)

// lingerTime bounds the wait for output after the program has ended: a daemon
// it left behind may hold the output open for ever.
const lingerTime = time.Second

// hangUpTime is how long a client may take to hang up after its program's end.
const hangUpTime = 10 * time.Second

// session is one program that runs for one client.
type session struct {
	request wire.Request
	conn    net.Conn
	out     *wire.Writer
	ended   atomic.Bool
	reader  sync.WaitGroup // reads the client's frames
	feeder  sync.WaitGroup // writes the program's input
}

func newSession(r wire.Request, conn net.Conn, out *wire.Writer) *session {
	return &session{request: r, conn: conn, out: out}
}

// run runs the program and returns its code as in [wire.Result].
func (s *session) run(ctx context.Context) int {
	cmd := exec.CommandContext(ctx, s.request.Argv[0], s.request.Argv[1:]...)
	cmd.Env = append(os.Environ(), s.request.Env...)
	cmd.Dir, cmd.WaitDelay = s.request.Dir, lingerTime
	if cmd.Dir == "" {
		cmd.Dir = "/root"
	}
	if s.request.Window != nil {
		return s.runOnTerminal(cmd)
	}
	cmd.Stdout, cmd.Stderr = s.out.Stream(wire.Stdout), s.out.Stream(wire.Stderr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// A pipe: with cmd.Stdin, Wait would wait for the end of the client's input, too.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return s.fail(err)
	}
	if err := cmd.Start(); err != nil {
		return s.fail(err)
	}
	s.reader.Go(func() { s.readClient(cmd.Process.Pid, stdin, nil) })
	return s.wait(cmd)
}

// finish tells the client the result and waits until it has hung up: closing
// with unread input would make the kernel drop data that is still on its way to
// the client.
func (s *session) finish(code int) {
	if s.out.WriteJSON(wire.Exited, wire.Result{Code: code}) != nil {
		return
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(hangUpTime))
	s.reader.Wait()
	s.feeder.Wait()
	_, _ = io.Copy(io.Discard, s.conn)
}

// wait waits for the program's end. From then on nothing kills its process group:
// a daemon may live on in it, or other processes may have its number.
func (s *session) wait(cmd *exec.Cmd) int {
	err := cmd.Wait()
	s.ended.Store(true)
	return exitCode(err)
}

// readClient passes on the client's frames. When the client is gone, it kills the
// program's process group. Another goroutine writes the program's input, because
// the program may not read it.
func (s *session) readClient(pid int, stdin io.WriteCloser, resize func(wire.Window)) {
	input := make(chan []byte, wire.InputWindow+1) // and the end
	s.feeder.Go(func() { s.feed(stdin, input) })
	defer close(input)
	for {
		kind, payload, err := wire.Read(s.conn)
		if err == nil && kind == wire.Stdin && len(input) == cap(input) {
			err = errors.New("the client sends more input than allowed")
		}
		switch {
		case err != nil:
			if !s.ended.Load() {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
			return
		case kind == wire.Stdin:
			input <- payload
		case kind == wire.Resize && resize != nil:
			var w wire.Window
			if json.Unmarshal(payload, &w) == nil {
				resize(w)
			}
		}
	}
}

// feed writes the program's input. A program may close it early: feed then takes
// the rest and drops it.
func (s *session) feed(stdin io.WriteCloser, input <-chan []byte) {
	for payload := range input {
		if len(payload) == 0 {
			_ = stdin.Close()
			continue
		}
		_, _ = stdin.Write(payload)
		_ = s.out.Write(wire.Taken, nil)
	}
}

// fail tells the client why a program could not be started, with a shell's exit codes.
func (s *session) fail(err error) int {
	_, _ = io.WriteString(s.out.Stream(wire.Stderr), "lab: "+err.Error()+"\n")
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

func exitCode(err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0 // exited with 0, or only its output lingers
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
