package zfs

import (
	"cmp"
	"context"
	"fmt"

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
	if size <= d.size && !d.short {
		return nil, nil
	}
	if err := cmp.Or(z.usable(p.config.Now()), z.admit(d.parent, r.Limits, max(0, size-d.size))); err != nil {
		return nil, err
	}
	if d.files() {
		return []step{{
			command: p.config.growDatasetCommand(name, size),
			learn:   func(z *zpool) { d := z.datasets[name]; d.size, d.quota = size, size },
			takes:   size - d.size, parent: d.parent,
		}}, nil
	}
	if size <= d.size {
		return []step{p.fillStep(name)}, nil
	}
	grow := step{
		command: p.config.growCommand(name, size),
		// When a zvol grows, the kernel takes it for another disk, and drops what it has not yet
		// written of the filesystem on it: seen with ZFS 2.1 on files that were closed.
		check: func() error {
			if p.config.Devices.Claimed(name) {
				return fmt.Errorf("%w: volume %s is mounted, and would lose what is not yet written: it grows when no pod uses it", provision.ErrInUse, r.ID)
			}
			return nil
		},
		learn: func(z *zpool) { d := z.datasets[name]; d.size, d.short = size, true },
		takes: size - d.size, parent: d.parent,
	}
	return []step{grow, p.fillStep(name)}, nil
}

// fillStep reserves room for all of a zvol that has grown. ZFS does that itself as long as what
// was reserved is what it had reckoned, which a growth that was cut short may have left otherwise.
func (p *Provisioner) fillStep(name string) step {
	return step{
		command: p.config.fillCommand(name),
		learn:   func(z *zpool) { z.datasets[name].short = false },
	}
}
