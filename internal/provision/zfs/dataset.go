package zfs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// A volume is a zvol or a dataset, which is a filesystem of ZFS itself. This file has
// what is different about datasets:
//
//   - The size is a quota on what the files take, and as much is reserved. While it grows
//     the quota is ahead for a moment, since ZFS refuses a reservation above it. So the
//     smaller of the two is what is promised, and a quota that was left ahead is taken back.
//   - There is no device. It is mounted by its name, and nobody mounts it but Berth:
//     mountpoint=legacy and canmount=noauto keep the node's services from it.
//   - A snapshot does not say what size its volume had, so a property does.

// ZFS's own properties of a dataset, next to those of its class. With them it is to pods
// what other filesystems of Linux are: ACLs of POSIX, and attributes that cost no
// further file each. The rest is left to the pool.
var datasetOptions = map[string]string{
	"mountpoint": "legacy", "canmount": "noauto", "xattr": "sa", "acltype": "posixacl",
}

// propSize is on the snapshots of datasets: the size in bytes of the volume.
const propSize = "berth.dev:size"

// atRest is what may have been written since the last snapshot of something that was rolled
// back to it: ZFS writes a little into a filesystem by itself.
var atRest = map[string]int64{kindFilesystem: significant, kindVolume: 0}

const (
	propQuota       = "refquota"
	propReservation = "refreservation"
	propRecords     = "recordsize"
	propCanMount    = "canmount"
)

// files says whether a volume is a dataset.
func (d *dataset) files() bool { return d.kind == kindFilesystem }

// filesystemKind is what a request calls a volume of this kind.
func (d *dataset) filesystemKind() string {
	if d.files() {
		return provision.Dataset
	}
	return ""
}

// kindOf is what a request makes.
func kindOf(r provision.CreateRequest) string {
	if r.Filesystem == provision.Dataset {
		return kindFilesystem
	}
	return kindVolume
}

// staleDatasets notes that the zpools with datasets of Berth's may have changed since a
// time, and says whether there are any: the kernel shows zvols alone.
func (s *state) staleDatasets(since time.Time) (stale bool) {
	s.each(func(z *zpool) {
		if len(z.datasets) > z.zvols() && z.read.Before(since) {
			stale = true
			z.reading.Changed(s.clock.Now())
		}
	})
	return stale
}

// datasetArgs are the options that make a dataset of a request.
func datasetArgs(r provision.CreateRequest, size int64) []string {
	values := maps.Clone(datasetOptions)
	values[propQuota], values[propReservation] = text(size), text(size)
	if r.ZFS.RecordSize != 0 {
		values[propRecords] = text(r.ZFS.RecordSize)
	}
	return options(values)
}

func (c Config) createDatasetCommand(r provision.CreateRequest, size int64, name string) run.Command {
	return c.command("create", slices.Concat(datasetArgs(r, size), properties(r, ""), []string{name})...)
}

// cloneDatasetCommand makes a clone with its size: it inherits nothing from its origin.
func (c Config) cloneDatasetCommand(r provision.CreateRequest, size int64, of original, name string) run.Command {
	return c.command("clone", slices.Concat(datasetArgs(r, size), properties(r, of.filesystem), []string{of.snapshot, name})...)
}

func (c Config) growDatasetCommand(name string, size int64) run.Command {
	return c.command("set", propQuota+"="+text(size), propReservation+"="+text(size), name)
}

func (c Config) quotaCommand(name string, size int64) run.Command {
	return c.command("set", propQuota+"="+text(size), name)
}

// datasetSize is what a dataset may hold and has room for. One without reservation is in
// the trash, or somebody took it away.
func datasetSize(r row) int64 {
	switch {
	case r.refquota == 0:
		return r.refreservation
	case r.refreservation == 0:
		return r.refquota
	}
	return min(r.refquota, r.refreservation)
}

// ahead says whether a dataset may hold more than is promised: growing it was not finished.
func (d *dataset) ahead() bool { return d.files() && d.isVolume() && d.reserved && d.quota > d.size }

// quotaStep takes a quota back.
func (p *Provisioner) quotaStep(name string, size int64) step {
	return step{
		command: p.config.quotaCommand(name, size),
		learn:   func(z *zpool) { z.datasets[name].quota = size },
	}
}

// unmounted returns why something must not be done to a volume: a pod may see it. ZFS itself
// does not mind to rename what is mounted, and unmounts what it is to destroy.
func (p *Provisioner) unmounted(name string, d *dataset) error {
	used := p.config.Devices.Claimed
	if d.files() {
		used = p.config.Devices.Mounted
	}
	if used(name) {
		return fmt.Errorf("%w: volume %s is mounted", provision.ErrInUse, d.id)
	}
	return nil
}

// likeSource returns why a copy cannot be what is asked for: a copy is what its source is.
func (d *dataset) likeSource(r provision.CreateRequest) error {
	if d.filesystemKind() != r.Filesystem {
		return fmt.Errorf("%w: volume %s cannot be %s: its source is %s", provision.ErrInvalid, r.ID, noun(r.Filesystem), noun(d.filesystemKind()))
	}
	return nil
}

func noun(filesystem string) string {
	if filesystem == provision.Dataset {
		return "a dataset"
	}
	return "a zvol"
}

// sizeOfSnapshot is a zvol's own, and of a dataset what was recorded. Of a snapshot that
// others took it is what it holds.
func sizeOfSnapshot(r row) int64 {
	recorded, err := strconv.ParseInt(r.size, 10, 64)
	if err != nil || recorded <= 0 || recorded > provision.MaxSize {
		recorded = provision.RoundUp(r.referenced, Unit)
	}
	return cmp.Or(r.volsize, recorded)
}

func text(n int64) string { return strconv.FormatInt(n, 10) }
