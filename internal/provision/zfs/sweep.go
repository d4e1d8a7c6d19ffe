package zfs

import "context"

// sweep does away with what nobody needs any more, for who holds the zpool's lock:
// whatever is still being made or kept without need at such a moment is left over.
// What fails is tried again after the next change.
func (p *Provisioner) sweep(ctx context.Context, name string) {
	for {
		var steps []step
		p.state.with(name, func(z *zpool) {
			if z != nil && z.unfit == "" && z.answers(p.config.Now()) == nil {
				steps = p.leftovers(z)
			}
		})
		if len(steps) == 0 {
			return
		}
		_, failure := p.take(ctx, name, steps[:1])
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
		case d.ahead():
			return []step{p.quotaStep(name, d.size)}
		case d.area == fresh:
			return []step{p.destroyStep(name, d)}
		case d.area == trash && len(d.snapshots) == 0:
			return []step{p.destroyStep(name, d)}
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
