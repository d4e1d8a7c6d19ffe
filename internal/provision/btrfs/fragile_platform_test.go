//go:build platform

package btrfs_test

import (
	"errors"
	"sync"

	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

var errCrash = errors.New("the process ended")

// crash ends a process at an effect: nothing that it does from then on has an effect.
type crash struct {
	mu sync.Mutex
	// at is the number of the effect, and after says that it still comes about.
	at    int
	after bool
	// done is called after each effect, with its number.
	done func(n int)
	seen int
	dead bool
}

func (c *crash) open(fsid string, changes bool) (btrfs.Filesystem, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return nil, errCrash
	}
	f, err := kernel.Open(fsid, changes)
	if err != nil {
		return nil, err
	}
	return fragile{f, c}, nil
}

func (c *crash) effect(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return errCrash
	}
	c.seen++
	c.dead = c.seen == c.at
	if c.dead && !c.after {
		return errCrash
	}
	err := do()
	if c.done != nil {
		c.done(c.seen)
	}
	if c.dead {
		return errCrash
	}
	return err
}

// fragile is a filesystem that a crash closes.
type fragile struct {
	*kernel.Filesystem
	c *crash
}

func (f fragile) Mark() error { return f.c.effect(f.Filesystem.Mark) }

func (f fragile) Make(dir string) error {
	return f.c.effect(func() error { return f.Filesystem.Make(dir) })
}

func (f fragile) Record(dir string, record []byte) error {
	return f.c.effect(func() error { return f.Filesystem.Record(dir, record) })
}

func (f fragile) Move(from, to string) error {
	return f.c.effect(func() error { return f.Filesystem.Move(from, to) })
}

func (f fragile) Remove(dir string) error {
	return f.c.effect(func() error { return f.Filesystem.Remove(dir) })
}

func (f fragile) Subvolume(dir string) (s kernel.Subvolume, err error) {
	err = f.c.effect(func() error { s, err = f.Filesystem.Subvolume(dir); return err })
	return s, err
}

func (f fragile) Snapshot(of string, is kernel.Subvolume, dir string, kept bool) (s kernel.Subvolume, err error) {
	err = f.c.effect(func() error { s, err = f.Filesystem.Snapshot(of, is, dir, kept); return err })
	return s, err
}

func (f fragile) Limit(id uint64, size int64) error {
	return f.c.effect(func() error { return f.Filesystem.Limit(id, size) })
}

func (f fragile) Count(id, volume uint64, counts bool) error {
	return f.c.effect(func() error { return f.Filesystem.Count(id, volume, counts) })
}

func (f fragile) Destroy(r kernel.Root) error {
	return f.c.effect(func() error { return f.Filesystem.Destroy(r) })
}

func (f fragile) Forget(id uint64) error {
	return f.c.effect(func() error { return f.Filesystem.Forget(id) })
}

func (f fragile) Commit() error { return f.c.effect(f.Filesystem.Commit) }
