package zfs

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// Delete implements provision.Provisioner. A volume whose snapshots are needed moves
// to the trash, where it is no volume any more; any other is destroyed.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	holder, err := p.locate(ctx, id, volumeIn)
	if errors.Is(err, provision.ErrNotFound) {
		if other, taken := p.state.taken(id); taken {
			return fmt.Errorf("%w: dataset %s is not Berth's", provision.ErrConflict, other)
		}
		return nil
	}
	if err != nil {
		return err
	}
	return p.carryOut(ctx, change{
		zpool: holder, id: id,
		plan: func(z *zpool) ([]step, error) { return p.planDelete(z, id) },
		// It is there, nothing depends on it and the zpool answers: what is left is that
		// somebody has it open.
		refused: func(_ *zpool, failure error) error {
			return fmt.Errorf("%w: volume %s: %w", provision.ErrInUse, id, failure)
		},
	})
}

func (p *Provisioner) planDelete(z *zpool, id string) ([]step, error) {
	name, d := z.volume(id)
	if d == nil {
		return nil, nil
	}
	if err := z.answers(p.config.Now()); err != nil {
		return nil, err
	}
	if len(d.snapshots) == 0 {
		return []step{p.destroyStep(name)}, nil
	}
	away := p.moveStep(name, z.trashName(d.parent, id), trash)
	away.check = func() error { // renaming would not mind
		if p.config.Devices.Claimed(name) {
			return fmt.Errorf("%w: volume %s is mounted", provision.ErrInUse, id)
		}
		return nil
	}
	return append(p.areaSteps(z, d.parent, trash), away), nil
}

// destroyStep removes a zvol without snapshots.
func (p *Provisioner) destroyStep(name string) step {
	return step{
		command: p.config.destroyCommand(name),
		learn: func(z *zpool) {
			d := z.datasets[name]
			delete(z.datasets, name)
			z.unclone(d.origin)
			p.config.Devices.Forget(name)
		},
	}
}

// unclone takes note that a clone of a snapshot went, and a deferred snapshot with the
// last one.
func (z *zpool) unclone(origin string) {
	for name, d := range z.datasets {
		at, ok := cutOrigin(origin, name)
		if ok && d.snapshots[at] != nil && d.snapshots[at].deferred && !z.cloned(origin) {
			delete(d.snapshots, at)
		}
	}
}

// sweep does away with what nobody needs any more, for who holds the zpool's lock:
// whatever is still being made or kept without need at such a moment is left over.
// What fails is tried again after the next change.
func (p *Provisioner) sweep(ctx context.Context, name string) {
	for {
		var steps []step
		p.state.with(name, func(z *zpool) {
			if z != nil && z.answers(p.config.Now()) == nil {
				steps = p.leftovers(z)
			}
		})
		if len(steps) == 0 {
			return
		}
		_, failure := p.take(name, steps[:1])
		p.signal()
		if failure != nil {
			p.refresh(ctx, name)
			return
		}
	}
}

// leftovers plans the next thing to do away with. Each step changes what is known, so
// that there is an end to it.
func (p *Provisioner) leftovers(z *zpool) []step {
	for name, d := range z.datasets {
		for at, s := range d.snapshots {
			if s.base && !s.deferred {
				return []step{p.dropStep(name, at)}
			}
		}
		switch {
		case d.area == fresh:
			return []step{p.destroyStep(name)}
		case d.area == trash && len(d.snapshots) == 0:
			return []step{p.destroyStep(name)}
		case d.area == trash && d.reserved:
			return []step{{command: p.config.releaseCommand(name), learn: func(z *zpool) { z.datasets[name].reserved = false }}}
		case d.area == trash && d.dirty:
			// What was written since the last snapshot is needed by nobody.
			return []step{{
				command: p.config.rollbackCommand(name + "@" + d.newest()),
				learn:   func(z *zpool) { z.datasets[name].dirty = false },
			}}
		}
	}
	return nil
}
