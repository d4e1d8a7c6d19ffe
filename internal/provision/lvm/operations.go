package lvm

import (
	"context"
	"errors"
	"fmt"

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
	name := r.Pool.Name
	err := p.carryOut(ctx, change{
		group: name, id: r.ID,
		plan: func(g *group, _ bool) (bool, int64, error) {
			if other := p.state.holder(r.ID); other != "" && other != name {
				return false, 0, conflictElsewhere(r.ID, other) // made by another request meanwhile
			}
			return g.planCreate(r, p.config.Now())
		},
		command: func(size int64) run.Command { return p.config.createCommand(r, size) },
		learn: func(g *group, size int64) {
			g.volumes[r.ID] = &volume{size: size, active: true, inline: r.Inline}
		},
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.view(name, r.ID)
}

// notElsewhere returns ErrConflict if another pool holds the volume.
func (p *Provisioner) notElsewhere(ctx context.Context, r provision.CreateRequest) error {
	if err := p.load(ctx); err != nil {
		return err
	}
	elsewhere := func() (string, bool) {
		name, ok := p.state.find(r.ID)
		return name, ok && (provision.PoolRef{Type: provision.LVM, Name: name}) != r.Pool
	}
	if name, ok := elsewhere(); ok {
		p.refresh(ctx, name)
	}
	if name, ok := elsewhere(); ok {
		return conflictElsewhere(r.ID, name)
	}
	return nil
}

func conflictElsewhere(id, group string) error {
	return fmt.Errorf("%w: volume %s exists in volume group %s", provision.ErrConflict, id, group)
}

// known returns ErrPoolMissing unless there is such a pool.
func (p *Provisioner) known(ctx context.Context, ref provision.PoolRef) error {
	if ref.Type != provision.LVM {
		return fmt.Errorf("%w: a pool of type %s is not managed by LVM", provision.ErrPoolMissing, ref.Type)
	}
	if p.state.has(ref.Name) {
		return nil
	}
	if err := p.refreshAll(ctx); err != nil {
		return err
	}
	if p.state.has(ref.Name) {
		return nil
	}
	return fmt.Errorf("%w: no volume group is named %s", provision.ErrPoolMissing, ref.Name)
}

// Expand implements provision.Provisioner.
func (p *Provisioner) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	name, err := p.locate(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	err = p.carryOut(ctx, change{
		group: name, id: r.ID,
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planExpand(r, p.config.Now()) },
		command: func(size int64) run.Command { return p.config.extendCommand(name, r.ID, size) },
		learn: func(g *group, size int64) {
			if v := g.volumes[r.ID]; v != nil {
				v.size = size
			}
		},
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.view(name, r.ID)
}

// Delete implements provision.Provisioner.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	name, err := p.locate(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		if other, taken := p.state.taken(id); taken {
			return fmt.Errorf("%w: logical volume %s/%s is not Berth's", provision.ErrConflict, other, id)
		}
		return nil
	}
	if err != nil {
		return err
	}
	return p.carryOut(ctx, change{
		group: name, id: id,
		plan:    func(g *group, fresh bool) (bool, int64, error) { return g.planDelete(id, fresh) },
		command: func(int64) run.Command { return p.config.removeCommand(name, id) },
		learn:   func(g *group, _ int64) { delete(g.volumes, id) },
	})
}
