package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/run"
)

// The assumed delays of LVM: 20 ms to answer, 80 ms to change a group.
const (
	queryDelay  = 20 * time.Millisecond
	changeDelay = 80 * time.Millisecond
)

// exitFailed is LVM's exit code for a command that failed.
const exitFailed = 5

func main() {
	args := os.Args
	if filepath.Base(args[0]) == "lvm" { // otherwise it runs by a link with the command's name
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "lvm stand-in: no command given")
		os.Exit(exitFailed)
	}
	operation := filepath.Base(args[0])
	out, err := perform(run.Command{Operation: operation, Program: "lvm", Args: append([]string{operation}, args[1:]...)})
	os.Stdout.Write(out)
	if exit := new(run.ExitError); errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, exit.Stderr)
		os.Exit(exit.Code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
}

// lockDir is a directory that the node and the agent's container share.
const lockDir = "/run/lock/lvm"

// perform plays a command. Changes exclude each other and every query, like LVM's lock of a
// group: the benchmark has only one group.
func perform(c run.Command) (out []byte, err error) {
	locking, delay := unix.LOCK_EX, changeDelay
	switch c.Operation {
	case "lvmconfig", "fullreport", "vgs":
		locking, delay = unix.LOCK_SH, queryDelay
	}
	if err := os.MkdirAll(lockDir, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(lockDir, "stand-in"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), locking); err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	<-time.After(delay)
	m, err := load()
	if err != nil {
		return nil, err
	}
	out, err = m.host.Change(c)
	return out, errors.Join(err, m.store())
}
