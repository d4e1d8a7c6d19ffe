package zpool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// A volume is a zvol or a dataset, which is a filesystem of ZFS itself. Datasets differ from
// zvols, and this file has the differences:
//
//   - The size is a quota on the space that the files take, and as much is reserved. While the
//     dataset grows, the quota is ahead of the reservation for a moment, since ZFS refuses a
//     reservation above the quota. So the promised size is the smaller of the two, and Berth
//     takes back a quota that was left ahead.
//   - There is no device. A dataset is mounted by its name, and only Berth mounts it:
//     mountpoint=legacy and canmount=noauto keep the node's services from it.
//   - A snapshot does not say what size its volume had, so a property does.

// datasetOptions are ZFS's own properties of a dataset, next to those of its class. With them
// a dataset works for pods like other filesystems of Linux: it has ACLs of POSIX, and attributes
// that cost no further file each. It inherits all other properties from the pool.
var datasetOptions = map[string]string{
	"mountpoint": "legacy", "canmount": "noauto", "xattr": "sa", "acltype": "posixacl",
}

// propSize is on the snapshots of datasets: the size in bytes of the volume.
const propSize = "berth.dev:size"

// atRest is how many bytes may have been written to a dataset since its last snapshot although
// it was rolled back to that: ZFS writes a little into a filesystem by itself.
var atRest = map[string]int64{kindFilesystem: significant, kindVolume: 0}

const (
	propQuota       = "refquota"
	propReservation = "refreservation"
	propRecords     = "recordsize"
	propCanMount    = "canmount"
)

// Files says whether a volume is a dataset.
func (d *Dataset) Files() bool { return d.kind == kindFilesystem }

// filesystemKind returns the filesystem that a request for a volume of this kind names.
func (d *Dataset) filesystemKind() string {
	if d.Files() {
		return provision.Dataset
	}
	return ""
}

// kindOf returns the kind of the volume that a request makes.
func kindOf(r provision.CreateRequest) string {
	if r.Tree == provision.Dataset {
		return kindFilesystem
	}
	return kindVolume
}

// datasetArgs are the options that make a dataset of a request.
func datasetArgs(r provision.CreateRequest, size int64) []string {
	values := maps.Clone(datasetOptions)
	values[propQuota], values[propReservation] = text(size), text(size)
	if r.Tuning.RecordSize != 0 {
		values[propRecords] = text(r.Tuning.RecordSize)
	}
	return options(values)
}

func (t Tool) createDatasetCommand(r provision.CreateRequest, size int64, name string) run.Command {
	return t.Command("create", slices.Concat(datasetArgs(r, size), properties(r, ""), []string{name})...)
}

// cloneDatasetCommand makes a clone with its size: a clone inherits nothing from its origin.
func (t Tool) cloneDatasetCommand(r provision.CreateRequest, size int64, of original, name string) run.Command {
	return t.Command("clone", slices.Concat(datasetArgs(r, size), properties(r, of.filesystem), []string{of.snapshot, name})...)
}

func (t Tool) growDatasetCommand(name string, size int64) run.Command {
	return t.Command("set", propQuota+"="+text(size), propReservation+"="+text(size), name)
}

func (t Tool) quotaCommand(name string, size int64) run.Command {
	return t.Command("set", propQuota+"="+text(size), name)
}

// datasetSize returns how many bytes a dataset may hold and has room for. A dataset without a
// reservation is in the trash, or others took its reservation away.
func datasetSize(r Row) int64 {
	switch {
	case r.refquota == 0:
		return r.refreservation
	case r.refreservation == 0:
		return r.refquota
	}
	return min(r.refquota, r.refreservation)
}

// ahead says whether a dataset's quota is above its promised size: growing it was not finished.
func (d *Dataset) ahead() bool { return d.Files() && d.IsVolume() && d.reserved && d.quota > d.size }

// quotaStep takes a quota back to the size.
func (p Planner) quotaStep(name string, size int64) Step {
	return Step{
		Command: p.quotaCommand(name, size),
		Learn:   func(z *Facts) { z.Datasets[name].quota = size },
	}
}

// unmounted has a step fail with ErrInUse while a pod uses the volume. ZFS itself renames a
// mounted dataset, and unmounts a dataset that it is to destroy.
func (d *Dataset) unmounted(name string) *Use {
	return &Use{Dataset: name, Mounted: d.Files(), Refusal: fmt.Errorf("%w: volume %s is mounted", provision.ErrInUse, d.ID)}
}

// likeSource returns ErrInvalid if a request asks for a copy of another kind than its source.
func (d *Dataset) likeSource(r provision.CreateRequest) error {
	if d.filesystemKind() != r.Tree {
		return fmt.Errorf("%w: volume %s cannot be %s: its source is %s", provision.ErrInvalid, r.ID, noun(r.Tree), noun(d.filesystemKind()))
	}
	return nil
}

func noun(filesystem string) string {
	if filesystem == provision.Dataset {
		return "a dataset"
	}
	return "a zvol"
}

// sizeOfSnapshot returns the size that ZFS tells for a snapshot of a zvol, and the recorded size
// for one of a dataset. For one of a dataset that others took, it returns how much it holds.
func sizeOfSnapshot(r Row) int64 {
	recorded, err := strconv.ParseInt(r.size, 10, 64)
	if err != nil || recorded <= 0 || recorded > provision.MaxSize {
		recorded = provision.RoundUp(r.referenced, Unit)
	}
	return cmp.Or(r.volsize, recorded)
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// Size in bytes of the volume.
func (d *Dataset) Size() int64 { return d.size }
