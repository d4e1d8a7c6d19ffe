package zfs

import (
	"cmp"
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// Create implements provision.Provisioner.
func (p *Provisioner) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	if err := p.engine.LoadOnce(ctx); err != nil {
		return provision.Volume{}, err
	}
	if err := cmp.Or(p.state.twins(r.ID), p.state.twins(r.Source.Volume), p.state.twins(r.Source.Snapshot)); err != nil {
		return provision.Volume{}, err
	}
	if err := p.elsewhere(r); err != nil {
		return provision.Volume{}, err
	}
	parent, err := zpool.DatasetOf(r.Pool)
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
	name, tried := zpool.Of(parent), false
	err = p.engine.CarryOut(ctx, zpool.Change{
		Unit: name, ID: r.ID,
		Beside: func() engine.Beside {
			return engine.Beside{Alters: r.Source.Volume, Keeps: p.state.volumeOf(r.Source.Snapshot)}
		},
		Plan: p.plannedWith(name, func() { tried = true }, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
			return plan.Create(z, r, parent)
		}),
		Refused: zpool.NoRoom(provision.RoundUp(r.Size, zpool.Unit)),
		Undo: p.planned(name, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
			if !tried {
				return nil, nil // the volume was there before
			}
			return plan.UndoCreate(z, r), nil
		}),
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.ready(ctx, r.ID)
}

// elsewhere returns ErrConflict if the volume exists in another pool than the request names.
func (p *Provisioner) elsewhere(r provision.CreateRequest) (err error) {
	for _, z := range p.engine.All() {
		if _, d := z.Volume(r.ID); d != nil && zpool.PoolRef(d.Parent) != r.Pool {
			err = zpool.ConflictElsewhere(r.ID, d)
		}
	}
	return err
}

// known returns ErrPoolMissing unless there is such a pool.
func (p *Provisioner) known(ctx context.Context, parent string) error {
	there := func() (ok bool) {
		p.engine.With(zpool.Of(parent), func(z *zpool.Facts) {
			if z != nil {
				_, ok = z.Parents[parent]
				ok = ok || z.Read.IsZero() // the plan says why it was not read
			}
		})
		return ok
	}
	if there() {
		return nil
	}
	p.engine.ChangedAll()
	if err := p.engine.RefreshDue(ctx); err != nil {
		return err
	}
	if !there() {
		return fmt.Errorf("%w: no zpool is named %s, and no filesystem of that name is marked as a pool (zfs set %s=%s %s)",
			provision.ErrPoolMissing, parent, zpool.PropPool, parent, parent)
	}
	return nil
}
