package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/progress"
)

// bootTimeout is generous: several guests may boot on few processors.
const bootTimeout = 3 * time.Minute

// cleanupTimeout bounds the removal of a machine after its work was cancelled.
const cleanupTimeout = 30 * time.Second

// Run makes a throw-away machine below dir, runs one program in it and returns
// the program's exit code. Nothing of the machine remains, however Run ends:
// the guest powers off when its session breaks, and the next Run removes the files
// of a killed one.
func Run(ctx context.Context, dir string, s Spec, r ExecRequest, report progress.Reporter) (code int, err error) {
	own, unlock, err := ownDirectory(ctx, dir)
	if err != nil {
		return 0, fmt.Errorf("making a directory for a throw-away machine: %w", err)
	}
	defer unlock()
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	s.Seed.Plan.Tethered = true
	m, err := Create(ctx, filepath.Join(own, "machine"), s)
	if err != nil {
		return 0, err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		err = errors.Join(err, m.Remove(clean))
	}()
	if err := boot(ctx, m, report); err != nil {
		return 0, err
	}
	return m.Exec(ctx, r)
}

func boot(ctx context.Context, m *Machine, report progress.Reporter) (err error) {
	step := report.Step("boot " + m.Name())
	defer func() { step.Done(err) }()
	if err := m.PowerOn(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	return m.WaitReady(ctx)
}

// ownDirectory makes a directory that is locked as long as this process lives,
// and removes directories without a lock. One process at a time does this, so that
// no process takes a new directory for a leftover before it is locked.
func ownDirectory(ctx context.Context, parent string) (dir string, unlock func(), err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	turn, err := lockDirectory(parent, unix.LOCK_EX)
	if err != nil {
		return "", nil, err
	}
	defer turn.Close()
	if err := sweep(ctx, parent); err != nil {
		return "", nil, fmt.Errorf("removing old ones: %w", err)
	}
	dir, err = os.MkdirTemp(parent, "run-")
	if err != nil {
		return "", nil, err
	}
	lock, err := lockDirectory(dir, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() { lock.Close() }, nil
}

// sweep removes the leftovers of killed runs: directories that no process has locked.
func sweep(ctx context.Context, parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, "run-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := lockDirectory(dir, unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			continue // in use, or gone meanwhile
		}
		err = removeLeftover(ctx, dir)
		lock.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func removeLeftover(ctx context.Context, dir string) error {
	m, err := Open(filepath.Join(dir, "machine"))
	if err == nil {
		err = m.Remove(ctx)
	}
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

func lockDirectory(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return f, nil
}
