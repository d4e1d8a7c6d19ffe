package zfs

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Format implements provision.Provisioner. Only the volume is locked while the
// filesystem is made: that may take long, and the zpool is needed by others.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	unlock, err := p.ids.Lock(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer p.tidyEach(ctx)
		defer unlock()
		return p.formatLocked(ctx, r)
	})
}

func (p *Provisioner) formatLocked(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	v, err := p.Get(ctx, r.ID) // its link leads to its device
	if err != nil {
		return provision.Volume{}, err
	}
	if met, err := r.Met(v); met || err != nil {
		return v, err
	}
	dataset, err := datasetOf(v.Pool)
	if err != nil {
		return provision.Volume{}, err
	}
	if r.Makes() {
		if err := p.config.Mkfs(ctx, v, r.Filesystem, r.Options); err != nil {
			return provision.Volume{}, fmt.Errorf("making %s on volume %s: %w", r.Filesystem, v.ID, err)
		}
	}
	err = p.carryOutFor(ctx, change{
		zpool: zpoolOf(dataset), id: r.ID,
		plan: func(z *zpool) ([]step, error) { return p.planRecord(z, r) },
	}, func() {})
	if err != nil {
		return provision.Volume{}, fmt.Errorf("recording %s on volume %s: %w", r.Filesystem, v.ID, err)
	}
	return p.ready(ctx, r.ID)
}

func (p *Provisioner) planRecord(z *zpool, r provision.FormatRequest) ([]step, error) {
	name, d := z.volume(r.ID)
	switch {
	case d == nil:
		return nil, notFound(r.ID)
	case d.filesystem == r.Filesystem:
		return nil, nil
	case d.filesystem != "":
		return nil, fmt.Errorf("%w: volume %s is recorded as %s", provision.ErrConflict, r.ID, d.filesystem)
	}
	return []step{{
		command: p.config.recordCommand(name, r.Filesystem),
		learn:   func(z *zpool) { z.datasets[name].filesystem = r.Filesystem },
	}}, nil
}
