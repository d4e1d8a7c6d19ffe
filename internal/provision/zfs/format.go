package zfs

import (
	"context"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// Format implements provision.Provisioner.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	defer p.tidyEach(ctx)
	return engine.Formatter{
		IDs: &p.engine.IDLocks, Tasks: &p.engine.Tasks, Get: p.Get, Mkfs: p.config.Mkfs, Record: p.recordFormat,
		View: func(ctx context.Context, v provision.Volume) (provision.Volume, error) { return p.ready(ctx, v.ID) },
	}.Format(ctx, r)
}

// recordFormat writes down, with the volume, that it is formatted.
func (p *Provisioner) recordFormat(ctx context.Context, v provision.Volume, filesystem string) error {
	dataset, err := zpool.DatasetOf(v.Pool)
	if err != nil {
		return err
	}
	name := zpool.Of(dataset)
	return p.engine.CarryOutLocked(ctx, func() {}, zpool.Change{
		Unit: name, ID: v.ID,
		Plan: p.planned(name, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
			return plan.Record(z, v.ID, filesystem)
		}),
	})
}
