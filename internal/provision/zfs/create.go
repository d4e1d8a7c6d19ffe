package zfs

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

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
		if z.available < 2*size {
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
	if z.datasets[staged] != nil {
		steps = append(steps, p.destroyStep(staged)) // an earlier attempt
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
	if d.size != size || d.inline != r.Inline || d.source != r.Source {
		return fmt.Errorf("%w: volume %s exists with %d bytes for %+v from %+v, not with %d for %+v from %+v", provision.ErrConflict,
			r.ID, d.size, d.inline, d.source, size, r.Inline, r.Source)
	}
	return nil
}

// planContent plans what makes a volume in the area of new ones, and says how much
// room it needs.
func (p *Provisioner) planContent(z *zpool, r provision.CreateRequest, size int64) (steps []step, needs int64, err error) {
	if r.Source == (provision.Source{}) {
		return []step{p.blankStep(r, size)}, size, nil
	}
	from, filesystem, held := "", "", int64(0)
	if r.Source.Snapshot != "" {
		of, s := z.snapshot(r.Source.Snapshot)
		if s == nil {
			return nil, 0, fmt.Errorf("%w: snapshot %s", provision.ErrNotFound, r.Source.Snapshot)
		}
		if err := r.Fits(poolRef(z.datasets[of].parent), s.size); err != nil {
			return nil, 0, err
		}
		from, filesystem = of+"@"+r.Source.Snapshot, s.filesystem
	} else {
		of, d := z.volume(r.Source.Volume)
		if d == nil {
			return nil, 0, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Source.Volume)
		}
		if err := r.Fits(poolRef(d.parent), d.size); err != nil {
			return nil, 0, err
		}
		at := d.baseName(r.ID)
		steps = append(steps, p.snapshotStep(of, d, at, ""))
		// What the base holds stays when its volume is overwritten.
		from, filesystem, held = of+"@"+at, d.filesystem, d.size
	}
	return append(steps, p.cloneSteps(r, size, filesystem, from)...), size + held, nil
}

// baseName is a name for the base of a clone that is not taken.
func (d *dataset) baseName(id string) string {
	for n := 1; ; n++ {
		if name := basePrefix + id + "." + strconv.Itoa(n); d.snapshots[name] == nil {
			return name
		}
	}
}

func (p *Provisioner) blankStep(r provision.CreateRequest, size int64) step {
	parent, _ := datasetOf(r.Pool)
	name := freshName(parent, r.ID)
	return step{
		command: p.config.createCommand(r, size, name),
		learn: func(z *zpool) {
			z.datasets[name] = &dataset{
				parent: parent, area: fresh, id: r.ID, size: size, reserved: true,
				record: record{inline: r.Inline, source: r.Source}, snapshots: map[string]*snapshot{},
			}
		},
	}
}

func (p *Provisioner) cloneSteps(r provision.CreateRequest, size int64, filesystem, from string) []step {
	parent, _ := datasetOf(r.Pool)
	name := freshName(parent, r.ID)
	clone := step{
		command: p.config.cloneCommand(r, filesystem, from, name),
		learn: func(z *zpool) {
			z.datasets[name] = &dataset{
				parent: parent, area: fresh, id: r.ID, size: size, origin: from,
				record: record{filesystem: filesystem, inline: r.Inline, source: r.Source}, snapshots: map[string]*snapshot{},
			}
		},
	}
	reserve := step{
		command: p.config.reserveCommand(name, size),
		learn:   func(z *zpool) { z.datasets[name].reserved = true },
	}
	return []step{clone, reserve}
}

// areaSteps make an area of a pool unless it is there.
func (p *Provisioner) areaSteps(z *zpool, parent string, a area) []step {
	name := parent + "/" + string(a)
	if z.areas[name] {
		return nil
	}
	return []step{{command: p.config.areaCommand(name), learn: func(z *zpool) { z.areas[name] = true }}}
}

// moveStep renames a zvol into an area, which is where it is from one moment to the
// next.
func (p *Provisioner) moveStep(from, to string, where area) step {
	return step{
		command: p.config.renameCommand(from, to),
		learn: func(z *zpool) {
			d := z.datasets[from]
			delete(z.datasets, from)
			d.area, d.dirty = where, true
			z.datasets[to] = d
			for _, other := range z.datasets { // the origin of a clone is known by its present name
				if at, ok := cutOrigin(other.origin, from); ok {
					other.origin = to + "@" + at
				}
			}
			p.config.Devices.Forget(from)
		},
	}
}

// Expand implements provision.Provisioner.
func (p *Provisioner) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	holder, err := p.locate(ctx, r.ID, volumeIn)
	if err != nil {
		return provision.Volume{}, err
	}
	size := provision.RoundUp(r.Size, Unit)
	err = p.carryOut(ctx, change{
		zpool: holder, id: r.ID,
		plan:    func(z *zpool) ([]step, error) { return p.planExpand(z, r, size) },
		refused: noRoom(size),
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.ready(ctx, r.ID)
}

func (p *Provisioner) planExpand(z *zpool, r provision.ExpandRequest, size int64) ([]step, error) {
	name, d := z.volume(r.ID)
	if d == nil {
		return nil, notFound(r.ID)
	}
	if size <= d.size {
		return nil, nil
	}
	if err := cmp.Or(z.usable(p.config.Now()), z.admit(d.parent, r.Limits, size-d.size)); err != nil {
		return nil, err
	}
	return []step{{
		command: p.config.growCommand(name, size),
		learn:   func(z *zpool) { z.datasets[name].size = size },
	}}, nil
}
