package lvm

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Format implements provision.Provisioner. Only the volume is locked while the
// filesystem is made: that may take long, and the group is needed by others.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	unlock, err := p.volumes.Lock(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		return p.formatLocked(ctx, r)
	})
}

func (p *Provisioner) formatLocked(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	v, err := p.Get(ctx, r.ID) // active, and its node leads to its device
	if err != nil {
		return provision.Volume{}, err
	}
	if met, err := r.Met(v); met || err != nil {
		return v, err
	}
	if r.Makes() {
		if err := p.config.Mkfs(ctx, v, r.Filesystem, r.Options); err != nil {
			return provision.Volume{}, fmt.Errorf("making %s on volume %s: %w", r.Filesystem, v.ID, err)
		}
	}
	if err := p.record(ctx, v, r.Filesystem); err != nil {
		return provision.Volume{}, fmt.Errorf("recording %s on volume %s: %w", r.Filesystem, v.ID, err)
	}
	group, _ := split(v.Pool)
	return p.view(group, v.ID)
}

// record writes down, with the volume, that it is formatted.
func (p *Provisioner) record(ctx context.Context, v provision.Volume, filesystem string) error {
	name, _ := split(v.Pool)
	unlock, err := p.groups.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	return p.carryOutLocked(ctx, change{
		group: name, id: v.ID,
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planRecord(v.ID, filesystem) },
		command: func(int64) run.Command { return p.config.tagCommand(name, v.ID, tagFS+filesystem) },
		learn: func(g *group, _ int64) {
			if known := g.volumes[v.ID]; known != nil {
				known.filesystem = filesystem
			}
		},
	})
}
