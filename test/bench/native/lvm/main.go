package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The assumed delays of LVM: 20 ms to answer, 80 ms to change a group.
const (
	queryDelay  = 20 * time.Millisecond
	changeDelay = 80 * time.Millisecond
)

// exit codes of LVM.
const (
	exitUnknown = 3
	exitFailed  = 5
)

func main() {
	args := os.Args
	if filepath.Base(args[0]) == "lvm" { // otherwise it runs by a link with the command's name
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "lvm stand-in: no command given")
		os.Exit(exitUnknown)
	}
	err := perform(filepath.Base(args[0]), parse(args[1:]))
	switch {
	case errors.Is(err, errUnknown):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUnknown)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
}

var errUnknown = errors.New("the lvm stand-in does not know this command")

// command is a command of LVM. Changes exclude each other and every query, like LVM's
// lock of a group: only one group is used here.
type command struct {
	do      func(arguments) error
	delay   time.Duration
	locking int
}

var commands = map[string]command{
	"lvmconfig":  {func(arguments) error { return nil }, queryDelay, unix.LOCK_SH}, // nothing is set
	"fullreport": {printReport, queryDelay, unix.LOCK_SH},
	"vgs":        {printNames, queryDelay, unix.LOCK_SH},
	"vgcreate":   {createGroup, changeDelay, unix.LOCK_EX},
	"vgremove":   {removeGroup, changeDelay, unix.LOCK_EX},
	"pvremove":   {wipeDevice, changeDelay, unix.LOCK_EX},
	"lvcreate":   {createVolume, changeDelay, unix.LOCK_EX},
	"lvextend":   {extendVolume, changeDelay, unix.LOCK_EX},
	"lvremove":   {removeVolume, changeDelay, unix.LOCK_EX},
	"lvchange":   {changeVolume, changeDelay, unix.LOCK_EX},
}

// lockDir is a directory that the node and the agent's container share.
const lockDir = "/run/lock/lvm"

func perform(name string, a arguments) error {
	c, known := commands[name]
	if !known {
		return fmt.Errorf("%s: %w", name, errUnknown)
	}
	if err := os.MkdirAll(lockDir, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(lockDir, "stand-in"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), c.locking); err != nil {
		return fmt.Errorf("locking: %w", err)
	}
	<-time.After(c.delay)
	return c.do(a)
}
