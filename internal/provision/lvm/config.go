package lvm

import (
	"context"
	"errors"
	"io"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/duplicate"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/wipe"
	"berth.dev/berth/internal/run"
)

// Devices gives the provisioner access to block devices without a process. Package kernel
// implements it.
type Devices interface {
	// Leads returns nil if a device node exists and leads to the device of an identity. Otherwise
	// the error says where it leads to. Leads opens nothing.
	Leads(path string, is provision.Identity) error

	// UUID returns the uuid of a device-mapper device; fs.ErrNotExist if there is none.
	UUID(name string) (string, error)

	// Sequence returns the number of the last change of the volume group whose
	// metadata a physical volume holds. An error means that it holds none or cannot be
	// read.
	Sequence(device string) (uint64, error)

	// Blocks returns the block devices of this machine by the kernel's names. It reads from
	// none of them.
	Blocks() (map[string]group.Block, error)

	// Known returns what udev knows of a device, by the kernel's name of it; nothing where udev does not run.
	Known(name string) group.Known

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

	// Mapped returns all device-mapper devices by their names.
	Mapped() (map[string]group.Mapping, error)

	// Unload drops the table that was loaded into a device-mapper device and is not in use yet.
	// It is no error if the device has none or is gone.
	Unload(name string) error

	// Opens returns how often a device-mapper device is open; 0 if there is none.
	Opens(name string) (int, error)

	// Hold opens the device of an identity for writing, exclusively. It fails with ErrBusy while
	// the device is mounted or held. No process can mount or hold it until the Holder is closed.
	// Hold fails if the path leads to another device.
	Hold(path string, is provision.Identity) (Holder, error)

	// Look opens the device of an identity for reading.
	Look(path string, is provision.Identity) (Looker, error)

	// Provides says whether the device mapper has a type of target. It first has the kernel load
	// the module that the target needs.
	Provides(target string) (bool, error)

	// Watch calls ready once no change escapes it any more. From then until ctx ends it calls
	// written with the path of each block device that a writer has closed, that appeared or that
	// went. Neither function blocks.
	Watch(ctx context.Context, ready func(), written func(device string)) error
}

// Lender lends whole disks that are empty. Package device implements it.
type Lender interface {
	// Lend calls take with the nodes of the disks that are proved to be empty, if there are any.
	// It returns why the other disks are not lent.
	Lend(ctx context.Context, disks []string, take func(nodes []string) error) (refused []error, err error)
}

// ErrBusy says that a device is mounted or that another process holds it.
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

const (
	// queryTimeout is how long LVM may take to report.
	queryTimeout = 30 * time.Second
	// retryInterval is how often the provisioner asks again for groups that it cannot use.
	retryInterval = 30 * time.Second
	// refreshInterval is how often everything is read again although no change was noticed.
	refreshInterval = 5 * time.Minute
	// fillInterval is how often the kernel is asked how full the thin pools are.
	fillInterval = 10 * time.Second
	// openPatience is how long a device that is to be wiped may stay open before it counts as in
	// use, since udev opens devices for a moment. LVM waits as long.
	openPatience = 5 * time.Second
	// wipeRetry is how long wiping, copying, or activating a thin pool pauses after a failure. It
	// doubles with each further failure, up to refreshInterval.
	wipeRetry = 10 * time.Second
)

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
	// CopyStep is how many bytes are copied at a time; 4 MiB by default.
	CopyStep int64
	// WipeStep is how many bytes are wiped at a time; 256 MiB by default.
	WipeStep int64
	// WipeRecord is how many bytes are overwritten before the progress is recorded, behind which
	// a restart continues; 64 GiB by default, and less where that takes more than 5 minutes.
	WipeRecord int64
}

func (c Config) withDefaults() (Config, error) {
	if c.Runner == nil || c.Devices == nil || c.Mkfs == nil {
		return c, errors.New("an LVM provisioner needs a runner, devices and mkfs")
	}
	if c.Program == "" {
		c.Program = "lvm"
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
	return c, nil
}
