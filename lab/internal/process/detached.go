package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec is a program to start detached.
type Spec struct {
	Name  string // what people call it, e.g. "etcd"
	Path  string // program; its base name becomes argv[0]
	Args  []string
	Env   []string // added to the environment of the lab itself
	Dir   string   // working directory; "/" if empty
	Log   string   // file that gets standard output and error, appended
	NetNS string   // path of a network namespace to run in, or empty
	Stdin *os.File // nil is an empty input
	// Namespaces are the kinds of namespaces it gets of its own, as in clone(2).
	Namespaces uintptr
}

// Record identifies a detached process also after other processes get its pid. Store it as
// JSON.
type Record struct {
	Name      string `json:"name"`
	PID       int    `json:"pid"`
	StartTime uint64 `json:"startTime"` // field 22 of /proc/PID/stat, clock ticks since boot
	Log       string `json:"log,omitempty"`
}

// Start starts a program in its own session, so that neither the end of the
// lab command nor Control-C at its terminal reaches it. The context bounds
// only the start.
func Start(ctx context.Context, s Spec) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	path, err := Look(s.Path)
	if err != nil {
		return Record{}, err
	}
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o755); err != nil {
		return Record{}, fmt.Errorf("creating log directory: %w", err)
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Record{}, fmt.Errorf("opening log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(path, s.Args...) //nolint:noctx // it outlives the command that starts it
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, log, log
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	if s.Stdin != nil { // a nil file in an interface would not be nil
		cmd.Stdin = s.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: s.Namespaces}
	// The process must not inherit open files of the lab's caller, such as a lock: it would
	// hold them for the life of the cluster.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return Record{}, fmt.Errorf("keeping open files from %s: %w", s.Name, err)
	}
	if err := startIn(s.NetNS, cmd); err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	// This command never waits for the process. If the process ends first it is a zombie,
	// which Alive and Stop treat as ended; init reaps it after this command.
	pid := cmd.Process.Pid
	st, err := readStat(pid)
	if err != nil {
		return Record{}, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	return Record{Name: s.Name, PID: pid, StartTime: st.startTime, Log: s.Log}, cmd.Process.Release()
}

// Alive reports whether the recorded process still runs.
func (r Record) Alive() bool {
	if r.PID <= 0 {
		return false
	}
	st, err := readStat(r.PID)
	return err == nil && st.startTime == r.StartTime && st.state != 'Z' && st.state != 'X'
}

// Signal sends sig to the recorded process. It returns [os.ErrProcessDone] if that has ended.
func (r Record) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signalling %s: unknown signal %v", r.Name, sig)
	}
	fd, err := r.open()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, number, nil, 0); err != nil {
		return fmt.Errorf("signalling %s: %w", r.Name, err)
	}
	return nil
}

// Stop asks the process to end, and kills it when it has not ended after
// grace. A grace of zero kills at once. Stop returns when the process is gone; a
// process that was gone already is no error.
func (r Record) Stop(ctx context.Context, grace time.Duration) error {
	fd, err := r.open()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if grace > 0 {
		// A stopped process sees its SIGTERM only when it is continued.
		_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
		_ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		limited, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if waitEnd(limited, fd) == nil {
			return nil
		}
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err := waitEnd(ctx, fd); err != nil {
		return fmt.Errorf("waiting for the end of %s (pid %d): %w", r.Name, r.PID, err)
	}
	return nil
}

// open returns a pidfd of the recorded process. It compares the start time after
// the descriptor is open: from then on the descriptor cannot mean another process.
func (r Record) open() (int, error) {
	if r.PID <= 0 {
		return -1, os.ErrProcessDone
	}
	fd, err := unix.PidfdOpen(r.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, os.ErrProcessDone
	}
	if err != nil {
		return -1, fmt.Errorf("opening process %s (pid %d): %w", r.Name, r.PID, err)
	}
	if !r.Alive() {
		unix.Close(fd)
		return -1, os.ErrProcessDone
	}
	return fd, nil
}

// waitEnd waits until the process of a pidfd has ended or ctx is done.
func waitEnd(ctx context.Context, fd int) error {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 50) // short, so that a done ctx is noticed
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("polling process: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
