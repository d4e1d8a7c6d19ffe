package device

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device/gpt"
	"berth.dev/berth/internal/provision/wipe"
)

// ErrBusy says that a disk or a partition is open or held elsewhere.
var ErrBusy = errors.New("device is busy")

// Disk is a whole disk as the kernel describes it.
type Disk struct {
	// Name of the kernel for it: "sdb".
	Name string
	// Sequence tells apart disks that have the same name at different times.
	Sequence string
	// Identity is reported by the disk itself, and stays the same wherever the disk is
	// plugged in. Empty if the disk reports none.
	Identity string
	// Geometry of the disk.
	gpt.Geometry
	// Rotational says that it is a spinning disk.
	Rotational bool
	// Links to its node in /dev/disk.
	Links []string
	// Holders are the devices that are made of it or its partitions.
	Holders []string
	// Partitions that the kernel knows.
	Partitions []Partition
}

// Partition of a disk as the kernel knows it, in bytes.
type Partition struct {
	Name          string
	Number        int
	Start, Length int64
}

// Disks gives the provisioner access to the machine's disks. Package kernel
// implements it. All reads and writes go through it.
type Disks interface {
	// List returns the disks that could hold data for good: no loop, memory, mapped,
	// optical, removable or read-only devices, none without a medium, and none that is
	// reached over a network and so perhaps by other nodes.
	List() ([]Disk, error)

	// Find returns one of them by the kernel's name for it, without its links.
	Find(name string) (Disk, bool)

	// Read opens a disk for reading.
	Read(name string) (Reader, error)

	// Hold opens a disk for writing, exclusively. It fails with ErrBusy while anything on
	// the disk is mounted or held, and nothing on it can be until the disk is closed.
	Hold(name string) (Holder, error)

	// Leads returns nil if a path leads to the device of an identity.
	Leads(path string, is provision.Identity) error

	// Keep opens a partition for reading, which keeps the kernel from forgetting it.
	Keep(path string) (io.Closer, error)

	// Watch calls ready once it misses no event any more, and then written with the
	// path of each block device that a writer has closed, that appeared or that went,
	// until ctx ends. Neither blocks.
	Watch(ctx context.Context, ready func(), written func(device string)) error
}

// Reader reads a disk, past every cache.
type Reader interface {
	io.ReaderAt
	io.Closer
}

// Holder changes a disk that it has open exclusively.
type Holder interface {
	io.Closer

	// WriteAt writes one block, whole or not at all; it is on the disk when it returns.
	io.WriterAt

	// Discard and Overwrite make a range read as zeros.
	wipe.Device

	// AddPartition tells the kernel of a partition; its node is there when it returns.
	AddPartition(p Partition) error

	// RemovePartition makes the kernel forget a partition. It fails with ErrBusy while the
	// partition is open in any way.
	RemovePartition(number int) error
}

const (
	// readTimeout is how long a report waits for a disk.
	readTimeout = 10 * time.Second
	// lookInterval is how often the kernel is asked for its disks, without reading any, unless
	// a report asked since the last time. That finds changes of which no event tells, such as
	// links that udev makes late.
	lookInterval = 10 * time.Second
	// refreshInterval is how often all disks are read again although no change was noticed, and
	// wiping is tried again after it failed.
	refreshInterval = 5 * time.Minute
)

// Config of a provisioner.
type Config struct {
	// Disks of this machine.
	Disks Disks
	// Mkfs makes filesystems.
	Mkfs provision.Mkfs

	// WipeStep is how many bytes are wiped at a time; 256 MiB by default.
	WipeStep int64
	// WipeRecord is how many bytes are overwritten before that is recorded, so that a restart
	// goes on behind them; 64 GiB by default, and less where that takes more than 5 minutes.
	WipeRecord int64
	// Random makes identities; crypto/rand by default.
	Random io.Reader
	// Now defaults to time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() (Config, error) {
	if c.Disks == nil || c.Mkfs == nil {
		return c, errors.New("a provisioner of disks needs disks and mkfs")
	}
	if c.WipeStep == 0 {
		c.WipeStep = 256 << 20
	}
	if c.WipeRecord == 0 {
		c.WipeRecord = wipe.MarkBytes
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return c, nil
}
