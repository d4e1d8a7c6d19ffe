package zfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

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
	if err := p.elsewhere(r); err != nil {
		return provision.Volume{}, err
	}
	parent, err := datasetOf(r.Pool)
	if err != nil {
		return provision.Volume{}, err
	}
	if err := p.known(ctx, parent); err != nil {
		return provision.Volume{}, err
	}
	if _, there := p.state.find(r.ID, volumeIn); !there {
		if err := p.writeOut(ctx, r.Source.Volume); err != nil {
			return provision.Volume{}, err
		}
	}
	tried := false
	err = p.carryOut(ctx, change{
		zpool: zpoolOf(parent), id: r.ID,
		besides: func() besides { return besides{alters: r.Source.Volume, keeps: p.state.volumeOf(r.Source.Snapshot)} },
		plan: func(z *zpool) ([]step, error) {
			return p.planCreate(z, r, parent, func() { tried = true })
		},
		refused: noRoom(provision.RoundUp(r.Size, Unit)),
		undo: func(z *zpool) []step {
			if !tried {
				return nil // whatever is there was there before
			}
			return p.undoCreate(z, r)
		},
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.ready(ctx, r.ID)
}

// elsewhere returns ErrConflict if a volume is there, and in another pool than is asked for.
func (p *Provisioner) elsewhere(r provision.CreateRequest) (err error) {
	p.state.each(func(z *zpool) {
		if _, d := z.volume(r.ID); d != nil && poolRef(d.parent) != r.Pool {
			err = conflictElsewhere(r.ID, d)
		}
	})
	return err
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

// planCreate plans what makes a volume; begun is called when making it begins.
func (p *Provisioner) planCreate(z *zpool, r provision.CreateRequest, parent string, begun func()) ([]step, error) {
	if z == nil {
		return nil, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	size := provision.RoundUp(r.Size, Unit)
	if name, d := z.volume(r.ID); d != nil {
		return p.planWhole(z, r, size, name, d)
	}
	if err := z.usable(p.config.Now()); err != nil {
		return nil, err
	}
	if _, ok := z.parents[parent]; !ok {
		return nil, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	name := liveName(parent, r.ID)
	if z.others[name] {
		return nil, fmt.Errorf("%w: dataset %s exists and is not Berth's: rename or destroy it", provision.ErrConflict, name)
	}
	makeIt, needs, err := p.planContent(z, r, size, name)
	if err != nil {
		return nil, err
	}
	if err := z.admit(parent, r.Limits, needs); err != nil {
		return nil, err
	}
	last := &makeIt[len(makeIt)-1]
	last.takes, last.parent, last.begun = needs, parent, begun
	return slices.Concat(p.areaSteps(z, parent, live), p.discardSteps(z, r.ID), makeIt), nil
}

// planWhole plans what a volume lacks that is there: the process that made it, or the machine,
// may have ended before its room was reserved.
func (p *Provisioner) planWhole(z *zpool, r provision.CreateRequest, size int64, name string, d *dataset) ([]step, error) {
	if err := d.matches(r, size); d.reserved || err != nil {
		return nil, err
	}
	if err := cmp.Or(z.usable(p.config.Now()), z.admit(d.parent, r.Limits, size-d.size)); err != nil {
		return nil, err
	}
	command := p.config.reserveCommand(name, size)
	if d.files() {
		command = p.config.growDatasetCommand(name, size)
	}
	return []step{{
		command: command, takes: size - d.size, parent: d.parent,
		learn: func(z *zpool) { d := z.datasets[name]; d.size, d.quota, d.reserved = size, size, true },
	}}, nil
}

// undoCreate destroys a volume that this very change began to make, and that has no room: ZFS
// leaves a zvol for which it had none if udev looks at it. One that holds anything of its own
// stays, whoever made it.
func (p *Provisioner) undoCreate(z *zpool, r provision.CreateRequest) []step {
	name, d := z.volume(r.ID)
	if d == nil || d.reserved || d.holds || len(d.snapshots) > 0 {
		return nil
	}
	if d.filesystem != "" && r.Source == (provision.Source{}) {
		return nil // it was formatted, and not by this change
	}
	return []step{p.destroyStep(name, d)}
}

// unfinished are the datasets that a crash left of a volume.
func (z *zpool) unfinished(id string) (names []string) {
	for name, d := range z.datasets {
		if d.unfinished && d.id == id {
			names = append(names, name)
		}
	}
	return names
}

// discardSteps destroy what a crash left of a volume. It holds nothing, and nobody but who
// knows its id has a use for it.
func (p *Provisioner) discardSteps(z *zpool, id string) (steps []step) {
	if z == nil {
		return nil
	}
	for _, name := range z.unfinished(id) {
		steps = append(steps, p.destroyStep(name, z.datasets[name]))
	}
	return steps
}

// matches returns nil if a volume is what a request asks for. One without its room may not
// have its size yet.
func (d *dataset) matches(r provision.CreateRequest, size int64) error {
	if poolRef(d.parent) != r.Pool {
		return conflictElsewhere(r.ID, d)
	}
	if d.reserved && d.size != size || d.size > size || d.inline != r.Inline || d.source != r.Source || d.filesystemKind() != r.Filesystem {
		return fmt.Errorf("%w: volume %s exists as %s with %d bytes for %+v from %+v, not as %s with %d for %+v from %+v", provision.ErrConflict,
			r.ID, noun(d.filesystemKind()), d.size, d.inline, d.source, noun(r.Filesystem), size, r.Inline, r.Source)
	}
	return nil
}
