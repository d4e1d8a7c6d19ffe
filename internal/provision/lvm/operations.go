package lvm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
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
	name, thin := group.Split(r.Pool)
	changes := []change{p.creation(r), p.growth(name, r.ID)}
	if r.Source.Volume != "" && thin == "" {
		if err := p.copier.cowable(r.ID); err != nil {
			return provision.Volume{}, err
		}
		changes = slices.Insert(changes, 0, p.copier.cow(name, r.ID, r.Source.Volume, func(g *group.Facts) (done bool, err error) {
			if _, done, err = p.planner().Creatable(g, r); !done {
				err = cmp.Or(p.state.elsewhere(r), err)
			}
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
	name, thin := group.Split(r.Pool)
	return change{group: name, id: r.ID, grows: thin, plan: func(g *group.Facts, _ bool) (*group.Step, error) {
		s, err := p.planner().Create(g, r)
		if s != nil || err != nil { // the volume is not there
			err = cmp.Or(p.state.elsewhere(r), err)
		}
		return s, err
	}}
}

// growth makes a thin copy as large as it must be.
func (p *changer) growth(name, id string) change {
	return change{group: name, id: id, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Grow(g, id) }}
}

// notElsewhere returns ErrConflict if another pool holds the volume.
func (p *Provisioner) notElsewhere(ctx context.Context, r provision.CreateRequest) error {
	if err := p.engine.LoadOnce(ctx); err != nil {
		return err
	}
	elsewhere := func() error {
		pool, ok, err := p.state.find(r.ID)
		if ok && pool != r.Pool {
			err = cmp.Or(err, group.ConflictElsewhere(r.ID, pool))
		}
		return err
	}
	if elsewhere() == nil {
		return nil
	}
	if err := p.refreshAll(ctx); err != nil { // it may be there no more
		return err
	}
	return elsewhere()
}

// known returns ErrPoolMissing unless there is such a pool.
func (p *Provisioner) known(ctx context.Context, ref provision.PoolRef) error {
	if ref.Type != provision.TypeOf(ref.Name) {
		return fmt.Errorf("%w: no pool of type %s that LVM manages is named %s", provision.ErrPoolMissing, ref.Type, ref.Name)
	}
	name, thin := group.Split(ref)
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
		return cmp.Or(p.state.unknown(name, time.Now()), group.NoThinPool(ref.Name))
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
	name, thin := group.Split(pool)
	err = p.carryOut(ctx, change{
		group: name, id: r.ID, grows: thin,
		plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Expand(g, r) },
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.view(name, r.ID)
}
