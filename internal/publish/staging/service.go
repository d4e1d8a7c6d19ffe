package staging

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/kubeletdir"
)

// ErrNotStaged says that a volume is to be published and its filesystem is not
// mounted at the staging path.
var ErrNotStaged = errors.New("volume is not staged")

// Disks are the node's volumes and mounts; poold.Node is one.
type Disks interface {
	Get(ctx context.Context, id string) (provision.Volume, error)
	Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error)
	mount.Mounter
}

// Rescanner is what Disks also are if their devices may grow without the kernel's knowledge.
type Rescanner interface {
	// Rescan has the kernel ask the device of a volume for its size.
	Rescan(ctx context.Context, id string) error
}

// Doubter is what Disks also are if a filesystem may have to be checked before it is mounted.
type Doubter interface {
	// Doubted says whether the whole filesystem of a volume is to be checked before it is mounted.
	Doubted(ctx context.Context, id string) (bool, error)
}

// Wishes returns the spec of a volume as far as the node knows it; nil if it does not know
// it at the moment.
type Wishes interface {
	Spec(ctx context.Context, id string) *v1alpha1.VolumeSpec
}

// Locks are held by volume id, shared with the replica worker.
type Locks interface {
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// MountTable returns the paths where a volume's device is mounted or bound, as the kernel
// has them. It must not touch the device: that may hang.
type MountTable func(v provision.Volume) ([]string, error)

// Config has the parts that a Service works with.
type Config struct {
	// Node that the volumes are on, and the kubelet's directory on it: all paths lie below that.
	Node, KubeletDir string
	Disks            Disks
	Wishes           Wishes
	Mounts           MountTable
	Locks            Locks
	// Owner of the volumes; it shares Locks.
	Owner Owner
}

// Service stages and publishes the volumes of one node. All calls are idempotent.
type Service struct {
	disks  Disks
	wishes Wishes
	mounts MountTable
	locks  Locks
	owner  Owner
	node   string
	dir    kubeletdir.Dir
	calls  keyed.Locks[string]
}

// New makes the service of a node.
func New(c Config) *Service {
	return &Service{
		disks: c.Disks, wishes: c.Wishes, mounts: c.Mounts, locks: c.Locks, owner: c.Owner,
		node: c.Node, dir: kubeletdir.New(c.KubeletDir),
	}
}

// begin admits one call at a time for a volume, and checks the paths of the call.
func (s *Service) begin(id string, paths ...string) (end func(), err error) {
	if err := s.check(id, paths...); err != nil {
		return nil, err
	}
	end, err = s.calls.TryLock(id)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", id, err)
	}
	return end, nil
}

// check refuses an id that no volume can have, and paths outside the kubelet's directory.
func (s *Service) check(id string, paths ...string) error {
	if err := checkID(id); err != nil {
		return err
	}
	for _, p := range paths {
		if err := s.dir.Check(p); err != nil {
			return err
		}
	}
	return nil
}

// usable returns the record of a volume that can be used.
func (s *Service) usable(ctx context.Context, id string) (provision.Volume, error) {
	record, err := s.disks.Get(ctx, id)
	if err != nil {
		return provision.Volume{}, fmt.Errorf("looking up volume %s on this node: %w", id, err)
	}
	switch {
	case record.Problem != "":
		return provision.Volume{}, fmt.Errorf("%w: volume %s: %s", provision.ErrUnavailable, id, record.Problem)
	case record.Copying:
		return provision.Volume{}, fmt.Errorf("%w: volume %s is still being copied from %s%s, and can be used once that is done",
			provision.ErrUnavailable, id, record.Source.Snapshot, record.Source.Volume)
	}
	return record, nil
}

// intended is usable for a volume that is about to be given to a pod: it must be in the pool
// that its Volume names for this node. Another volume can bear its id: on a copy of a disk, or
// in data that a pod wrote. While the Volume is not known only the record counts. A shared disk is in no
// pool: its Owner has compared what the disk says of itself with its Volume.
func (s *Service) intended(ctx context.Context, id string) (provision.Volume, error) {
	record, err := s.usable(ctx, id)
	if err != nil {
		return provision.Volume{}, err
	}
	if spec := s.wishes.Spec(ctx, id); spec != nil && record.Pool != (provision.PoolRef{}) {
		err = refusePool(record, spec.Replicas, s.node)
	}
	return record, err
}

// refusePool returns nil if a record is that of the replica on a node.
func refusePool(record provision.Volume, replicas []v1alpha1.ReplicaSpec, node string) error {
	for _, r := range replicas {
		switch {
		case r.Node != node:
		case r.Pool == record.Pool.Name:
			return nil
		default:
			return fmt.Errorf("%w: volume %s is in pool %s on this node, and its Volume object says pool %s: it is not used, since it may be another volume of that name",
				provision.ErrConflict, record.ID, record.Pool.Name, r.Pool)
		}
	}
	return fmt.Errorf("%w: volume %s is in pool %s on this node, and its Volume object says nothing of node %s",
		provision.ErrUnavailable, record.ID, record.Pool.Name, node)
}

// checkID returns ErrNotFound for an id that no volume of Berth can have.
func checkID(id string) error {
	if !v1alpha1.IsVolumeName(id) {
		return fmt.Errorf("%w: %.64q is no volume id of this driver", provision.ErrNotFound, id)
	}
	return nil
}
