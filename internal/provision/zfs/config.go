package zfs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"berth.dev/berth/internal/run"
)

// Pool is an imported zpool, and the kernel's word for its state: ONLINE, DEGRADED,
// SUSPENDED and others.
type Pool struct{ Name, State string }

// Devices is what the provisioner sees of ZFS without starting a process, and without
// waiting for a zpool that does not answer; package kernel implements it.
type Devices interface {
	// Pools returns the zpools that are imported; none if the machine has no ZFS.
	Pools() ([]Pool, error)

	// Locate makes the link to a zvol lead to its device, and waits a moment for one
	// that is about to appear. An error means that it did not.
	Locate(ctx context.Context, dataset string) error

	// Confirm asks the device itself whether it is the zvol's, to which the link leads.
	Confirm(dataset string) error

	// Forget removes a link to a zvol that went.
	Forget(dataset string)

	// Settle waits until udev does not look at a zvol any more, some seconds at most.
	Settle(ctx context.Context, dataset string)

	// Claimed says whether a zvol is mounted, or claimed by another device.
	Claimed(dataset string) bool
}

// Config of a provisioner.
type Config struct {
	// Runner starts the ZFS processes.
	Runner run.Runner
	// Devices of this machine.
	Devices Devices
	// Mkfs makes a filesystem on a device, over whatever it holds. It must not be
	// killed in the middle and is called once the record says that the device is blank.
	Mkfs func(ctx context.Context, device, filesystem string) error

	// Program is the ZFS binary, "zfs" by default.
	Program string
	// BlockSize of new zvols in bytes, a power of two from 8 KiB to 128 KiB; 16 KiB by
	// default.
	BlockSize int
	// Compression of new zvols in ZFS's words; by default that of the pool.
	Compression string
	// QueryTimeout is how long ZFS may take to report; 30 s by default.
	QueryTimeout time.Duration
	// RefreshInterval is how often zpools are read again, which is how changes by others
	// are noticed; 1 min by default.
	RefreshInterval time.Duration
	// WatchInterval is how often the kernel is asked which zpools there are and whether
	// they work; 5 s by default.
	WatchInterval time.Duration
	// Now defaults to time.Now.
	Now func() time.Time
}

var compression = regexp.MustCompile(`^(on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-[a-z0-9-]{1,12})?)$`)

const (
	minBlockSize = 8 << 10 // smaller ones need more room than is charged for them
	maxBlockSize = 128 << 10
)

func (c Config) withDefaults() (Config, error) {
	if c.Runner == nil || c.Devices == nil || c.Mkfs == nil {
		return c, errors.New("a ZFS provisioner needs a runner, devices and mkfs")
	}
	if c.Program == "" {
		c.Program = "zfs"
	}
	if c.BlockSize == 0 {
		c.BlockSize = 16 << 10
	}
	if c.BlockSize < minBlockSize || c.BlockSize > maxBlockSize || c.BlockSize&(c.BlockSize-1) != 0 {
		return c, fmt.Errorf("a block size of %d is not a power of two from %d to %d", c.BlockSize, minBlockSize, maxBlockSize)
	}
	if c.Compression != "" && !compression.MatchString(c.Compression) {
		return c, fmt.Errorf("ZFS has no compression %q", c.Compression)
	}
	if c.QueryTimeout == 0 {
		c.QueryTimeout = 30 * time.Second
	}
	if c.RefreshInterval == 0 {
		c.RefreshInterval = time.Minute
	}
	if c.WatchInterval == 0 {
		c.WatchInterval = 5 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
