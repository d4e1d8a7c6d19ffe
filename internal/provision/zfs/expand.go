package zfs

import (
	"context"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zpool"
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
	size := provision.RoundUp(r.Size, zpool.Unit)
	err = p.engine.CarryOut(ctx, zpool.Change{
		Unit: holder, ID: r.ID,
		Plan:    p.planned(holder, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) { return plan.Expand(z, r, size) }),
		Refused: zpool.NoRoom(size),
	})
	if err != nil {
		return provision.Volume{}, err
	}
	return p.ready(ctx, r.ID)
}
