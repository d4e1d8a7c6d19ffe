package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// machineDir is a directory that every process which changes pools shares with the machine, also in a container.
const machineDir = "/dev"

// tending is the word that this process tends the pools of its machine, until it ends: it removes what a crash left in
// them. A second process would take for leftovers what the first one is about to finish.
type tending struct{ dir *os.File }

// tendPools gives the word. Several processes may, as on a machine that plays several nodes.
func tendPools(machine string) (*tending, error) {
	dir, err := os.Open(machine) //nolint:gosec // a directory of the machine
	if err != nil {
		return nil, err
	}
	lock := unix.Flock_t{Type: unix.F_RDLCK}
	if err := unix.FcntlFlock(dir.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		return nil, errors.Join(fmt.Errorf("saying that this process tends the pools: %w", err), dir.Close())
	}
	return &tending{dir}, nil
}

func (t *tending) end() error { return t.dir.Close() }

// untended returns an error if a process tends the pools of the machine.
func untended(machine string) (err error) {
	dir, err := os.Open(machine) //nolint:gosec // a directory of the machine
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(dir.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return fmt.Errorf("asking whether a process tends the pools: %w", err)
	}
	if lock.Type != unix.F_UNLCK {
		return errors.New("an agent or poold on this machine tends the pools, and the check and it might remove what the other makes: " +
			"run the check through poold, with --poold unix:///run/berth/poold.sock (in a cluster: chart value agent.poold=separate, container poold of the agent's pod)")
	}
	return nil
}
