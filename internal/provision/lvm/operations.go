package lvm

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Create implements provision.Provisioner.
func (p *Provisioner) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	if err := p.notElsewhere(ctx, r); err != nil {
		return provision.Volume{}, err
	}
	if err := p.known(ctx, r.Pool); err != nil {
		return provision.Volume{}, err
	}
	name, thin := split(r.Pool)
	changes := []change{p.creation(r), p.growth(r.Pool, r.ID)}
	if r.Source.Volume != "" && thin == "" {
		if err := p.cowable(r.ID); err != nil {
			return provision.Volume{}, err
		}
		changes = slices.Insert(changes, 0, p.cow(name, r.ID, r.Source.Volume, func(g *group) (done bool, err error) {
			done, _, err = p.planCreation(g, r)
			return done, err
		}))
	}
	defer p.nudge()
	if err := p.carryOut(ctx, changes...); err != nil {
		return provision.Volume{}, err
	}
	return p.view(name, r.ID)
}

// creation makes a volume: blank, or as a copy that may be too small yet.
func (p *Provisioner) creation(r provision.CreateRequest) change {
	name, thin := split(r.Pool)
	var from carved
	return change{
		group: name, id: r.ID, thin: thin, makes: r.ID, grows: thin != "", writes: makes(thin),
		plan: func(g *group, _ bool) (done bool, size int64, err error) {
			done, size, err = p.planCreation(g, r)
			if !done && err == nil {
				from, err = g.source(r)
			}
			if !done && err == nil && r.Source.Volume != "" && thin == "" {
				err = g.kept(r.ID)
			}
			return done, size, err
		},
		command: func(size int64) run.Command {
			if r.Source == (provision.Source{}) {
				return p.config.createCommand(r, size)
			}
			return p.config.copyCommand(r, from, size)
		},
		learn: func(g *group, size int64) {
			v := &volume{
				carved: carved{pool: thin, size: size, filesystem: from.filesystem, active: true, wipe: r.Wipe},
				inline: r.Inline, source: r.Source,
			}
			if copied := r.Source != (provision.Source{}); copied && thin == "" {
				v.copying, g.pendingOf(r.ID).due = true, p.config.Now()
			} else {
				v.growing = copied && from.size < size
			}
			g.volumes[r.ID] = v
		},
	}
}

// planCreation is planCreate with a look at the other groups. It is called within with.
func (p *Provisioner) planCreation(g *group, r provision.CreateRequest) (done bool, size int64, err error) {
	done, size, err = g.planCreate(r, p.config.Now())
	if !done {
		err = cmp.Or(p.state.elsewhere(r), err)
	}
	return done, size, err
}

// notElsewhere returns ErrConflict if another pool holds the volume.
func (p *Provisioner) notElsewhere(ctx context.Context, r provision.CreateRequest) error {
	if err := p.load(ctx); err != nil {
		return err
	}
	elsewhere := func() (provision.PoolRef, bool, error) {
		pool, ok, err := p.state.find(r.ID)
		return pool, ok && pool != r.Pool, err
	}
	pool, other, err := elsewhere()
	if err != nil {
		return err
	}
	if other {
		name, _ := split(pool)
		p.refresh(ctx, name)
		pool, other, err = elsewhere()
	}
	if err == nil && other {
		err = conflictElsewhere(r.ID, pool)
	}
	return err
}

func conflictElsewhere(id string, pool provision.PoolRef) error {
	return fmt.Errorf("%w: volume %s exists in pool %s", provision.ErrConflict, id, pool.Name)
}

// makes is how often LVM writes a group's metadata to make or remove a volume or a
// snapshot: for a thin one before and after the message to the pool, so that neither is
// lost.
func makes(thin string) uint64 {
	if thin != "" {
		return 2
	}
	return 1
}

// known returns ErrPoolMissing unless there is such a pool.
func (p *Provisioner) known(ctx context.Context, ref provision.PoolRef) error {
	if ref.Type != provision.LVM && ref.Type != provision.LVMThin || ref.Type != provision.TypeOf(ref.Name) {
		return fmt.Errorf("%w: no pool of type %s that LVM manages is named %s", provision.ErrPoolMissing, ref.Type, ref.Name)
	}
	name, thin := split(ref)
	if p.state.hasPool(name, thin) {
		return nil
	}
	if err := p.refreshAll(ctx); err != nil {
		return err
	}
	switch {
	case p.state.hasPool(name, thin):
		return nil
	case p.state.has(name):
		return cmp.Or(p.state.unknown(name, p.config.Now()), noThinPool(ref.Name))
	}
	return fmt.Errorf("%w: no volume group is named %s", provision.ErrPoolMissing, name)
}

// Expand implements provision.Provisioner.
func (p *Provisioner) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	pool, err := p.locate(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	name, thin := split(pool)
	err = p.carryOut(ctx, change{
		group: name, id: r.ID, thin: thin, grows: thin != "",
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planExpand(r, p.config.Now()) },
		command: func(size int64) run.Command { return p.config.extendCommand(name, r.ID, size) },
		learn: func(g *group, size int64) {
			if v := g.volumes[r.ID]; v != nil {
				v.size, v.growing = size, false
			}
		},
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.view(name, r.ID)
}
