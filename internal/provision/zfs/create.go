package zfs

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// Create implements provision.Provisioner.
func (p *Provisioner) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	if err := p.load(ctx); err != nil {
		return provision.Volume{}, err
	}
	if err := p.state.twins(r.ID); err != nil {
		return provision.Volume{}, err
	}
	if holder, ok := p.state.find(r.ID, volumeIn); ok {
		var conflict error
		p.state.with(holder, func(z *zpool) {
			if _, d := z.volume(r.ID); d != nil && poolRef(d.parent) != r.Pool {
				conflict = conflictElsewhere(r.ID, d)
			}
		})
		if conflict != nil {
			return provision.Volume{}, conflict
		}
	}
	parent, err := datasetOf(r.Pool)
	if err != nil {
		return provision.Volume{}, err
	}
	if err := p.known(ctx, parent); err != nil {
		return provision.Volume{}, err
	}
	if _, there := p.state.find(r.ID, volumeIn); !there && r.Source.Volume != "" {
		if err := p.writeOut(ctx, r.Source.Volume); err != nil {
			return provision.Volume{}, err
		}
	}
	err = p.carryOut(ctx, change{
		zpool: zpoolOf(parent), id: r.ID,
		plan:    func(z *zpool) ([]step, error) { return p.planCreate(z, r, parent) },
		refused: noRoom(provision.RoundUp(r.Size, Unit)),
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.ready(ctx, r.ID)
}

func conflictElsewhere(id string, d *dataset) error {
	return fmt.Errorf("%w: volume %s exists in pool %s", provision.ErrConflict, id, poolRef(d.parent).Name)
}

// known returns ErrPoolMissing unless there is such a pool.
func (p *Provisioner) known(ctx context.Context, parent string) error {
	there := func() (ok bool) {
		p.state.with(zpoolOf(parent), func(z *zpool) {
			if z != nil {
				_, ok = z.parents[parent]
				ok = ok || z.read.IsZero() // what is to be said of it is why it was not read
			}
		})
		return ok
	}
	if there() {
		return nil
	}
	p.state.staleAll()
	if err := p.refreshDue(ctx); err != nil {
		return err
	}
	if !there() {
		return fmt.Errorf("%w: no zpool is named %s, and no filesystem of that name is marked as a pool (zfs set %s=%s %s)",
			provision.ErrPoolMissing, parent, propPool, parent, parent)
	}
	return nil
}

// noRoom says that a refusal to make something of a size is for want of room: if
// there is less than ZFS may need for it on the worst arrangement of disks.
func noRoom(size int64) func(*zpool, error) error {
	return func(z *zpool, failure error) error {
		if z.available < 2*size && !errors.Is(failure, provision.ErrInUse) {
			return fmt.Errorf("%w: zpool %s has %d bytes available: %w", provision.ErrNoSpace, z.name, z.available, failure)
		}
		return failure
	}
}

func (p *Provisioner) planCreate(z *zpool, r provision.CreateRequest, parent string) ([]step, error) {
	if z == nil {
		return nil, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	size := provision.RoundUp(r.Size, Unit)
	if _, d := z.volume(r.ID); d != nil {
		return nil, d.matches(r, size)
	}
	if err := z.usable(p.config.Now()); err != nil {
		return nil, err
	}
	if _, ok := z.parents[parent]; !ok {
		return nil, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	name := parent + "/" + r.ID
	if z.others[name] {
		return nil, fmt.Errorf("%w: dataset %s exists and is not Berth's", provision.ErrConflict, name)
	}
	makeIt, needs, err := p.planContent(z, r, size)
	if err != nil {
		return nil, err
	}
	if err := z.admit(parent, r.Limits, needs); err != nil {
		return nil, err
	}
	staged := freshName(parent, r.ID)
	steps := p.areaSteps(z, parent, fresh)
	if old := z.datasets[staged]; old != nil {
		steps = append(steps, p.destroyStep(staged, old)) // an earlier attempt
	}
	steps = append(steps, makeIt...)
	// Until it bears its own name, it does not exist for anybody.
	return append(steps, p.moveStep(staged, name, live)), nil
}

// matches returns nil if a volume is what a request asks for.
func (d *dataset) matches(r provision.CreateRequest, size int64) error {
	if poolRef(d.parent) != r.Pool {
		return conflictElsewhere(r.ID, d)
	}
	if d.size != size || d.inline != r.Inline || d.source != r.Source || d.filesystemKind() != r.Filesystem {
		return fmt.Errorf("%w: volume %s exists as %s with %d bytes for %+v from %+v, not as %s with %d for %+v from %+v", provision.ErrConflict,
			r.ID, noun(d.filesystemKind()), d.size, d.inline, d.source, noun(r.Filesystem), size, r.Inline, r.Source)
	}
	return nil
}
