package zfs

import (
	"context"
	"maps"
	"slices"
)

// sweep does away with what nobody needs any more, and says whether there was any. What is
// being changed is left for whoever gives it back: he looks afterwards.
func (p *Provisioner) sweep(ctx context.Context, name string) (swept bool) {
	for more := true; more; {
		more = false
		var names []string
		p.state.with(name, func(z *zpool) { names = p.untidy(z) })
		for _, of := range names {
			did, failed, err := p.sweepUp(ctx, name, of)
			swept = swept || did
			// What was not left over any more may be again. And others may have made impossible
			// what failed, and have left the rest to who was at it.
			more = more || err == nil || failed.learn != nil && !p.isNext(name, of, failed)
		}
	}
	return swept
}

// isNext says whether a step is what is to be done next about what is left over of a dataset.
func (p *Provisioner) isNext(name, of string, s step) (next bool) {
	p.state.with(name, func(z *zpool) {
		steps := p.leftovers(z, of)
		next = len(steps) > 0 && slices.Equal(steps[0].command.Args, s.command.Args)
	})
	return next
}

// sweepUp does away with what is left over of one dataset, if anything is. What fails is
// tried again after the next change.
func (p *Provisioner) sweepUp(ctx context.Context, name, of string) (did bool, failed step, failure error) {
	_, _, id := place(of)
	unlockID, err := p.ids.TryLock(id)
	if err != nil {
		return false, failed, err
	}
	defer unlockID()
	unlock, err := p.zpools.Share(ctx, name)
	if err != nil {
		return false, failed, err
	}
	defer unlock()
	c := change{zpool: name, id: id, plan: func(z *zpool) ([]step, error) { return p.leftovers(z, of), nil }}
	steps, err := p.decide(c)
	if err != nil || len(steps) == 0 {
		return false, failed, err
	}
	defer p.state.with(name, func(z *zpool) { z.end(id) })
	if failed, err = p.take(ctx, c, steps); err != nil {
		p.state.changed(name)
		return false, failed, err
	}
	return true, failed, nil
}

// untidy are the datasets of which something is left over, in a stable order.
func (p *Provisioner) untidy(z *zpool) []string {
	if z == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(z.datasets)), func(name string) bool { return len(p.leftovers(z, name)) == 0 })
}

// base is the base of a clone that is not to go with it yet; empty if there is none.
func (d *dataset) base() string {
	for at, s := range d.snapshots {
		if s.base && !s.deferred {
			return at
		}
	}
	return ""
}

// leftovers plans what to do away with of one dataset. Each step changes what is known, so
// that there is an end to it.
func (p *Provisioner) leftovers(z *zpool, name string) []step {
	if z == nil || z.datasets[name] == nil || z.unfit != "" || z.answers(p.config.Now()) != nil {
		return nil
	}
	d := z.datasets[name]
	at := d.base()
	switch {
	case at != "":
		return []step{p.dropStep(name, at)}
	case d.ahead():
		return []step{p.quotaStep(name, d.size)}
	case d.short:
		return []step{p.fillStep(name)}
	case d.area != trash:
		return nil
	case len(d.snapshots) == 0:
		return []step{p.destroyStep(name, d)}
	case d.reserved:
		return []step{{command: p.config.releaseCommand(name), learn: func(z *zpool) { z.datasets[name].reserved = false }}}
	case d.dirty:
		// What was written since the last snapshot is needed by nobody.
		return []step{{
			command: p.config.rollbackCommand(name + "@" + d.newest()),
			learn:   func(z *zpool) { z.datasets[name].dirty = false },
		}}
	}
	return nil
}
