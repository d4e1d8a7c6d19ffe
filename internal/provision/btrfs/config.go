package btrfs

import (
	"context"
	"errors"
	"os"
	"time"

	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/run"
)

// Filesystem is an open filesystem: see kernel.Filesystem. Each of its methods asks one question
// or has one effect.
type Filesystem interface {
	Names(dir string) ([]string, error)
	Read(dir string) (record []byte, inode uint64, err error)
	Roots() (map[uint64]kernel.Root, error)
	Counted() (map[uint64][]uint64, error)
	Space(fsid string) (kernel.Space, error)
	Users(subvolume uint64, path string) ([]string, error)
	Copy(dir string) (record []byte, err error)
	Generation(dir string) (generation uint64, s kernel.Subvolume, err error)
	Send(dir string, is, base kernel.Subvolume, pipe *os.File) error

	RecordCopy(dir string, record []byte) error
	Bound(id uint64, size int64) error
	Seal(dir string, is kernel.Subvolume) error
	Apply(ctx context.Context, dir string, is kernel.Subvolume, increment bool, pipe *os.File) error
	Sync() error
	Mark() error
	Make(dir string) error
	Record(dir string, record []byte) error
	Move(from, to string) error
	Remove(dir string) error
	Subvolume(dir string) (kernel.Subvolume, error)
	Snapshot(of string, is kernel.Subvolume, dir string, kept bool) (kernel.Subvolume, error)
	Limit(id uint64, size int64) error
	Count(id, volume uint64, counts bool) error
	Destroy(r kernel.Root) error
	Forget(id uint64) error
	Commit() error
	Close()
}

// Lender lends whole disks that are empty; package device has one.
type Lender interface {
	// Lend proves which of the disks are empty, and calls take with their nodes if there are
	// any. It returns why the others are not lent.
	Lend(ctx context.Context, disks []string, take func(nodes []string) error) (refused []error, err error)
}

// Config of a provisioner.
type Config struct {
	// Runner starts mkfs, and the program that adds disks.
	Runner run.Runner
	// Disks that filesystems are made of; nil means that none is made here.
	Disks Lender
	// Open opens a mounted filesystem, to look at it or to change it; kernel.Open by default.
	Open func(fsid string, changes bool) (Filesystem, error)
	// Mounted returns the labels of the filesystems that are mounted, by their UUIDs; kernel.Mounted by
	// default.
	Mounted func() (map[string]string, error)
	// RefreshInterval is how often filesystems are read again, which is how changes by others
	// are noticed; 10 s by default.
	RefreshInterval time.Duration
	// Now defaults to time.Now.
	Now func() time.Time
}

const (
	// readTimeout is how long a filesystem may take to be read.
	readTimeout = 30 * time.Second
	// watchInterval is how often the kernel is asked which filesystems there are, and whether it
	// has freed what was deleted.
	watchInterval = time.Second
)

func (c Config) withDefaults() (Config, error) {
	if c.Runner == nil {
		return c, errors.New("a provisioner of btrfs needs a runner")
	}
	if c.Open == nil {
		c.Open = func(fsid string, changes bool) (Filesystem, error) { return kernel.Open(fsid, changes) }
	}
	if c.Mounted == nil {
		c.Mounted = kernel.Mounted
	}
	if c.RefreshInterval == 0 {
		c.RefreshInterval = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
