package pooled

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// Disks are the node's provisioners; poold.Node is one.
type Disks interface {
	provision.Provisioner
	provision.Replicators
	// Grow makes the filesystem of a mounted volume as large as the volume.
	Grow(ctx context.Context, r mount.GrowRequest) error
}

// Report is the latest report of the node's pools; pools.Observer is one.
type Report interface {
	// MayHaveVolume says whether a volume may be on the node, by the report.
	MayHaveVolume(id string) bool
	// HasRead says whether the report has read a pool. It fails before the first report.
	HasRead(pool string) (bool, error)
	// Pool returns a pool as the report has it, or only its name.
	Pool(ref provision.PoolRef) provision.Pool
	// Deleted notes that a volume was deleted, which the report may still show.
	Deleted(id string)
}

// Objects are the API's objects, as the node's watch shows them. They never wait for the API server, and an
// error says that the watch does not show it now.
type Objects interface {
	// Pools are the names of the pools of this node that may hold a volume: the one that its Volume names for the
	// node, or, if the watch shows no such Volume, all that the node has reported.
	Pools(ctx context.Context, volume string) ([]string, error)
	// ClassOf returns the PoolClass of a volume.
	ClassOf(ctx context.Context, volume string) (*v1alpha1.PoolClass, error)
	// Class returns a PoolClass.
	Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error)
}

// Config has the parts of Pools.
type Config struct {
	// Node is the name of this node.
	Node    string
	Disks   Disks
	Report  Report
	Objects Objects
	Mounts  staging.MountTable
	Clock   clock.PassiveClock
	// Streams bring copies from other nodes.
	Streams *Streams
}

// Pools are the copies in the pools of this node.
type Pools struct {
	Config
	// replicators by the type of their pools: that of a poold costs a call.
	replicators sync.Map
}

var _ owner.Pools = (*Pools)(nil)

// New makes the Pools of a node.
func New(c Config) *Pools { return &Pools{Config: c} }

// of returns the Replicator of the pool that a volume is in, and the volume. ErrNotFound proves nothing: see
// State.
func (p *Pools) of(ctx context.Context, id string) (provision.Replicator, provision.Volume, error) {
	v, err := p.Disks.Get(ctx, id)
	if err != nil {
		return nil, v, err
	}
	if known, ok := p.replicators.Load(v.Pool.Type); ok {
		return known.(provision.Replicator), v, nil
	}
	r, err := p.Disks.ReplicatorOf(ctx, v.Pool.Type)
	if err != nil {
		return nil, v, fmt.Errorf("volume %s in pool %s: %w", id, v.Pool.Name, err)
	}
	p.replicators.Store(v.Pool.Type, r)
	return r, v, nil
}

// IsCopy says whether a volume on this node is, or was, one of several copies, whether or not the node serves such
// volumes now. One that is not here is none.
func IsCopy(ctx context.Context, d Disks, id string) (bool, error) {
	r, _, err := (&Pools{Config: Config{Disks: d}}).of(ctx, id)
	if err == nil {
		var s provision.Replica
		s, err = r.State(ctx, id)
		return s.Exists, err
	}
	if errors.Is(err, provision.ErrNotFound) || errors.Is(err, provision.ErrUnsupported) {
		return false, nil
	}
	return false, err
}

// State implements owner.Pools.
func (p *Pools) State(ctx context.Context, id string) (provision.Replica, error) {
	r, _, err := p.of(ctx, id)
	if err == nil {
		var s provision.Replica
		if s, err = r.State(ctx, id); err == nil {
			return s, nil
		}
	}
	if errors.Is(err, provision.ErrNotFound) {
		err = p.absent(ctx, id, err)
	}
	return provision.Replica{}, err
}

// absent returns ErrNotFound if it is certain that the node does not have a volume which no provisioner has
// found, and else ErrUnavailable: a pool that is away may come back with a copy that counts.
func (p *Pools) absent(ctx context.Context, id string, cause error) error {
	if p.Report.MayHaveVolume(id) {
		return fmt.Errorf("%w: volume %s may be in a pool that does not answer, or that was there a moment ago", provision.ErrUnavailable, id)
	}
	may, err := p.Objects.Pools(ctx, id)
	if err != nil {
		return fmt.Errorf("%w: which pool volume %s may be in is not known: %w", provision.ErrUnavailable, id, err)
	}
	for _, pool := range may {
		switch read, err := p.Report.HasRead(pool); {
		case err != nil:
			return fmt.Errorf("%w: looking for volume %s: %w", provision.ErrUnavailable, id, err)
		case !read:
			return fmt.Errorf("%w: volume %s may be in pool %s, which is not there: bring the pool back", provision.ErrUnavailable, id, pool)
		}
	}
	return cause
}

// with calls do with the Replicator of a volume.
func (p *Pools) with(ctx context.Context, id string, do func(r provision.Replicator) error) error {
	r, _, err := p.of(ctx, id)
	if err != nil {
		return err
	}
	return do(r)
}

// Mark implements owner.Pools.
func (p *Pools) Mark(ctx context.Context, id string, m provision.Mark) error {
	return p.with(ctx, id, func(r provision.Replicator) error { return r.Mark(ctx, id, m) })
}

// Snapshot implements owner.Pools.
func (p *Pools) Snapshot(ctx context.Context, q provision.PointRequest) error {
	q.Limits = p.limits(ctx, q.Volume)
	return p.with(ctx, q.Volume, func(r provision.Replicator) error { return r.Snapshot(ctx, q) })
}

// limits are those of the volume's class. While the watch does not show the class they are those of the pool
// alone: the last writes of a pod are worth more than the spare.
func (p *Pools) limits(ctx context.Context, id string) provision.Limits {
	class, err := p.Objects.ClassOf(ctx, id)
	if err != nil {
		return provision.Limits{}
	}
	return poolclass.Limits(class)
}

// Preserve implements owner.Pools.
func (p *Pools) Preserve(ctx context.Context, id string, common lineage.Point) error {
	return p.with(ctx, id, func(r provision.Replicator) error { return r.Preserve(ctx, id, common) })
}

// RollBack implements owner.Pools.
func (p *Pools) RollBack(ctx context.Context, id string, to lineage.Point) error {
	return p.with(ctx, id, func(r provision.Replicator) error { return r.RollBack(ctx, id, to) })
}

// Drop implements owner.Pools.
func (p *Pools) Drop(ctx context.Context, id string, points []lineage.Point) error {
	return p.with(ctx, id, func(r provision.Replicator) error { return r.Drop(ctx, id, points) })
}

// Hold implements owner.Pools.
func (p *Pools) Hold(ctx context.Context, id string, h ownership.Hold) error {
	return p.with(ctx, id, func(r provision.Replicator) error { return r.Hold(ctx, id, h) })
}

// Abort implements owner.Pools.
func (p *Pools) Abort(ctx context.Context, id string) error {
	return p.with(ctx, id, func(r provision.Replicator) error { return r.Abort(ctx, id) })
}

// Writable implements owner.Pools.
func (p *Pools) Writable(ctx context.Context, id string) (v provision.Volume, err error) {
	err = p.with(ctx, id, func(r provision.Replicator) error {
		v, err = r.Writable(ctx, id)
		return err
	})
	return v, err
}

// Destroy implements owner.Pools. The provisioner refuses an open device; a raw block device that is bound into a
// pod need not be open.
func (p *Pools) Destroy(ctx context.Context, id string) error {
	v, err := p.Disks.Get(ctx, id)
	if err != nil {
		return err
	}
	switch paths, err := p.Mounts(v); {
	case errors.Is(err, provision.ErrNotFound): // no device, no mount
	case err != nil:
		return fmt.Errorf("looking for mounts of volume %s: %w", id, err)
	case len(paths) > 0:
		return fmt.Errorf("%w: volume %s is mounted at %s", provision.ErrInUse, id, paths[0])
	}
	if err := p.Disks.Delete(ctx, id); err != nil {
		return err
	}
	p.Report.Deleted(id)
	return nil
}

// Fetch implements owner.Pools.
func (p *Pools) Fetch(ctx context.Context, f owner.Fetch) error {
	r, _, err := p.of(ctx, f.Volume)
	if err != nil {
		return err
	}
	return p.Streams.fetch(ctx, r, f, p.limits(ctx, f.Volume))
}
