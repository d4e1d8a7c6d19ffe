package zfs

import (
	"cmp"
	"context"

	"berth.dev/berth/internal/provision"
)

// Expand implements provision.Provisioner.
func (p *Provisioner) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	holder, err := p.locateVolume(ctx, r.ID)
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
