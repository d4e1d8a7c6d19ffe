package zfs

import (
	"context"
	"errors"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Pool is an imported zpool, and the kernel's word for its state: ONLINE, DEGRADED,
// SUSPENDED and others.
type Pool struct{ Name, State string }

// Devices tells the provisioner about ZFS without starting a process, and without waiting
// for a zpool that does not answer. Package kernel implements it.
type Devices interface {
	Labels

	// Pools returns the zpools that are imported; none if the machine has no ZFS.
	Pools() ([]Pool, error)

	// Module is the version of the kernel's ZFS; empty if there is none.
	Module() string

	// Zvols counts the zvols that have a device, of all zpools.
	Zvols() (int, error)

	// Locate makes the link to a zvol lead to its device, and waits a moment for a device
	// that is about to appear. An error means that it did not appear.
	Locate(ctx context.Context, dataset string) error

	// Forget removes a link to a zvol that went.
	Forget(dataset string)

	// Settle waits until udev does not look at a zvol any more, some seconds at most.
	Settle(ctx context.Context, dataset string)

	// WriteOut writes all data to a volume that the kernel still keeps elsewhere: in memory, for
	// the volume's filesystem or its device, and in ZFS's intent log after a loss of power.
	// files says that the volume is a dataset.
	WriteOut(ctx context.Context, dataset string, files bool) error

	// Claimed says whether a zvol is mounted, or claimed by another device.
	Claimed(dataset string) bool

	// Mounted says whether a filesystem of ZFS is mounted anywhere, also where this
	// process does not see it; true if that cannot be told.
	Mounted(dataset string) bool
}

const (
	// queryTimeout is how long ZFS may take to report.
	queryTimeout = 30 * time.Second
	// watchInterval is how often the kernel is asked which zpools there are and whether they
	// work.
	watchInterval = 5 * time.Second
)

// Config of a provisioner.
type Config struct {
	// Runner starts the ZFS processes.
	Runner run.Runner
	// Devices of this machine.
	Devices Devices
	// Mkfs makes filesystems.
	Mkfs provision.Mkfs

	// Disks that zpools are made of; nil means that none is made here.
	Disks Lender
	// Program is the ZFS binary, "zfs" by default, and Zpool its other one, "zpool".
	Program, Zpool string
	// RefreshInterval is how often zpools are read again, which is how changes by others
	// are noticed; 1 min by default.
	RefreshInterval time.Duration
	// Pause returns after a moment, or when ctx ends; a zpool is tidied if nothing changed
	// meanwhile. It takes 1 s by default.
	Pause func(ctx context.Context)
	// Now defaults to time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() (Config, error) {
	if c.Runner == nil || c.Devices == nil || c.Mkfs == nil {
		return c, errors.New("a ZFS provisioner needs a runner, devices and mkfs")
	}
	if c.Program == "" {
		c.Program = "zfs"
	}
	if c.Zpool == "" {
		c.Zpool = "zpool"
	}
	if c.RefreshInterval == 0 {
		c.RefreshInterval = time.Minute
	}
	if c.Pause == nil {
		c.Pause = moment
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

func moment(ctx context.Context) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
