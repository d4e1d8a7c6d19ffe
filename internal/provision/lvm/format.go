package lvm

import (
	"context"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/lvm/group"
)

// Format implements provision.Provisioner.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	return engine.Formatter{
		IDs: &p.engine.IDLocks, Tasks: &p.engine.Tasks, Get: p.Get, Mkfs: p.config.Mkfs, Record: p.record,
		View: func(_ context.Context, v provision.Volume) (provision.Volume, error) {
			group, _ := group.Split(v.Pool)
			return p.view(group, v.ID)
		},
	}.Format(ctx, r)
}

// record writes down, with the volume, that it is formatted.
func (p *Provisioner) record(ctx context.Context, v provision.Volume, filesystem string) error {
	name, _ := group.Split(v.Pool)
	unlock, err := p.engine.UnitLocks.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	return p.carryOutLocked(ctx, change{
		group: name, id: v.ID,
		plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Record(g, v.ID, filesystem) },
	})
}
