package lvm

import (
	"context"
	"errors"
	"io"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/duplicate"
	"berth.dev/berth/internal/provision/wipe"
	"berth.dev/berth/internal/run"
)

// Devices is what the provisioner sees of block devices without starting a
// process; package kernel implements it.
type Devices interface {
	// Leads returns nil if a device node is there and leads to the device of an identity,
	// and else what it leads to. It opens nothing.
	Leads(path string, is provision.Identity) error

	// UUID returns the uuid of a device-mapper device; fs.ErrNotExist if there is none.
	UUID(name string) (string, error)

	// Sequence returns the number of the last change of the volume group whose
	// metadata a physical volume holds. An error means that it holds none or cannot be
	// read.
	Sequence(device string) (uint64, error)

	// Blocks returns the block devices of this machine by the kernel's names. It reads from
	// none of them.
	Blocks() (map[string]Block, error)

	// Name returns the kernel's name of a block device.
	Name(path string) (string, error)

	// DevicesFile says whether LVM has a devices file of that name.
	DevicesFile(name string) bool

	// Same says whether two paths lead to one device.
	Same(a, b string) bool

	// Target returns the type and the status of the one target that a device-mapper
	// device consists of; fs.ErrNotExist if there is no such device. Asking starts no
	// input or output.
	Target(name string) (kind, status string, err error)

	// Mapped returns all device-mapper devices by their names, and whether they are
	// suspended: who writes to one that is waits until it is resumed.
	Mapped() (suspended map[string]bool, err error)

	// Unload drops the table that was loaded into a device-mapper device and is not in use
	// yet. One that has none, or that is gone, is no error.
	Unload(name string) error

	// Opens returns how often a device-mapper device is open; 0 if there is none.
	Opens(name string) (int, error)

	// Hold opens the device of an identity for writing, alone: it fails with ErrBusy while it
	// is mounted or held, and cannot be until it is closed. Of another device it is an error.
	Hold(path string, is provision.Identity) (Holder, error)

	// Look opens the device of an identity for reading.
	Look(path string, is provision.Identity) (Looker, error)

	// Provides says whether the device mapper has a type of target, after it had the
	// kernel load what that needs.
	Provides(target string) (bool, error)

	// Watch calls ready once nothing escapes it any more, and then written with the
	// path of each block device that a writer has closed, that appeared or that went,
	// until ctx ends. Neither blocks.
	Watch(ctx context.Context, ready func(), written func(device string)) error
}

// Lender lends whole disks that are empty; package device has one.
type Lender interface {
	// Lend calls take with the nodes of those of the disks that are proved to be empty, if
	// there are any, and returns why the others are not lent.
	Lend(ctx context.Context, disks []string, take func(nodes []string) error) (refused []error, err error)
}

// ErrBusy says that somebody else has a device.
var ErrBusy = errors.New("device is busy")

// Looker is a device that is open for reading, past every cache.
type Looker interface {
	io.ReaderAt
	io.Closer

	// Size in bytes.
	Size() (int64, error)
}

// Holder is a device that is open for writing, alone.
type Holder interface {
	Looker
	wipe.Device
	duplicate.Target
}

// Config of a provisioner.
type Config struct {
	// Runner starts the LVM processes.
	Runner run.Runner
	// Devices of this machine.
	Devices Devices
	// Mkfs makes filesystems.
	Mkfs provision.Mkfs

	// Disks that volume groups are made of; nil means that none is made here.
	Disks Lender
	// Program is the LVM binary, "lvm" by default.
	Program string
	// Udev says that udev manages the device nodes and LVM shall wait for it. Without
	// it, as in a container that has no udev of its own, LVM makes the nodes itself.
	Udev bool
	// QueryTimeout is how long LVM may take to report; 30 s by default.
	QueryTimeout time.Duration
	// RefreshInterval is how often everything is read again although no change was
	// noticed; 5 min by default.
	RefreshInterval time.Duration
	// FillInterval is how often the kernel is asked how full the thin pools are; 10 s by
	// default.
	FillInterval time.Duration
	// OpenPatience is how long a device that is to be wiped may be open for a moment, as
	// when udev looks at it, before it counts as in use; 5 s by default, as with LVM.
	OpenPatience time.Duration
	// CopyStep is how many bytes are copied at a time; 4 MiB by default.
	CopyStep int64
	// WipeStep is how many bytes are wiped at a time; 256 MiB by default.
	WipeStep int64
	// WipeRecord is how many bytes are overwritten before that is recorded, so that a restart
	// goes on behind them; 64 GiB by default, and less where that takes more than 5 minutes.
	WipeRecord int64
	// WipeRetry is how long wiping, or copying, rests after it failed, and twice as long
	// after each failure more, up to RefreshInterval; 10 s by default.
	WipeRetry time.Duration
	// Now defaults to time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() (Config, error) {
	if c.Runner == nil || c.Devices == nil || c.Mkfs == nil {
		return c, errors.New("an LVM provisioner needs a runner, devices and mkfs")
	}
	if c.Program == "" {
		c.Program = "lvm"
	}
	if c.QueryTimeout == 0 {
		c.QueryTimeout = 30 * time.Second
	}
	if c.RefreshInterval == 0 {
		c.RefreshInterval = 5 * time.Minute
	}
	if c.FillInterval == 0 {
		c.FillInterval = 10 * time.Second
	}
	if c.OpenPatience == 0 {
		c.OpenPatience = 5 * time.Second
	}
	if c.CopyStep == 0 {
		c.CopyStep = 4 << 20
	}
	if c.WipeStep == 0 {
		c.WipeStep = 256 << 20
	}
	if c.WipeRecord == 0 {
		c.WipeRecord = wipe.MarkBytes
	}
	if c.WipeRetry == 0 {
		c.WipeRetry = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
