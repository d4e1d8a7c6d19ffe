package zfs

import (
	"context"
	"maps"
	"slices"
)

// A zpool is tidied behind its callers' backs: what a change left over is done away with,
// and what only ZFS knows of new snapshots is read. While more is asked for that would be
// in the way, so it is done when nothing changed for a moment, and at last after this many.
const moments = 30

// tidySoon sees to it that a zpool is tidied.
func (p *Provisioner) tidySoon(ctx context.Context, name string) {
	begin := false
	p.state.with(name, func(z *zpool) {
		begin = z != nil && !z.tidying && (len(p.untidy(z)) > 0 || len(z.unmeasured()) > 0)
		if begin {
			z.tidying = true
		}
	})
	if begin {
		ctx = context.WithoutCancel(ctx)
		p.tasks.Go(func() {
			p.awaitRest(ctx, name)
			p.state.with(name, func(z *zpool) {
				if z != nil {
					z.tidying = false // what comes from now on is seen to anew
				}
			})
			if p.sweep(ctx, name) {
				p.cleared(name)
				p.signal()
			}
			p.measure(ctx, name)
		})
	}
}

// seeClutter notes whether something is left over in a zpool that was just read.
func (p *Provisioner) seeClutter(z *zpool) {
	if z != nil {
		z.cluttered = len(p.untidy(z)) > 0
	}
}

// cleared has a zpool read again whose figures are with what was left over.
func (p *Provisioner) cleared(name string) {
	p.state.with(name, func(z *zpool) {
		if z != nil && z.cluttered && len(p.untidy(z)) == 0 {
			z.reading.Changed(p.state.clock.Now())
		}
	})
}

// tidyEach sees to it that all zpools are tidied.
func (p *Provisioner) tidyEach(ctx context.Context) {
	for _, name := range p.state.names() {
		p.tidySoon(ctx, name)
	}
}

// awaitRest returns when nothing changed for a moment, or has been changing for long.
func (p *Provisioner) awaitRest(ctx context.Context, name string) {
	for range moments {
		before, _ := p.activity(name)
		p.config.Pause(ctx)
		if after, running := p.activity(name); after == before && running == 0 {
			return
		}
	}
}

// activity is how many changes ended, and how many are under way.
func (p *Provisioner) activity(name string) (ended, underWay int) {
	p.state.with(name, func(z *zpool) {
		if z != nil {
			ended, underWay = z.ended, len(z.running)
		}
	})
	return ended, underWay
}

// atOnce bounds how many snapshots are read by one process.
const atOnce = 100

// unmeasured are the snapshots of which it is not known what they hold.
func (z *zpool) unmeasured() (names []string) {
	for of, d := range z.datasets {
		for at, s := range d.snapshots {
			if s.estimated {
				names = append(names, of+"@"+at)
			}
		}
	}
	slices.Sort(names)
	return names[:min(len(names), atOnce)]
}

// measure reads the snapshots of which it is not known what they hold: for all that is in a
// zpool that would take long.
func (p *Provisioner) measure(ctx context.Context, name string) {
	unlock, err := p.zpools.Share(ctx, name) // nobody reads it whole meanwhile
	if err != nil {
		return
	}
	defer unlock()
	var snapshots []string
	p.state.with(name, func(z *zpool) {
		if z != nil && z.answers(p.config.Now()) == nil && !z.asking {
			snapshots = z.unmeasured()
		}
	})
	if len(snapshots) == 0 {
		return
	}
	out, err := p.askOf(ctx, name, p.config.measureCommand(snapshots))
	rows, parseErr := parse(out)
	if err != nil || parseErr != nil { // one of them went meanwhile
		p.state.changed(name)
		p.signal()
		return
	}
	p.state.with(name, func(z *zpool) { z.learnSizes(rows) })
	p.signal()
	p.tidySoon(ctx, name) // there may be more
}

// learnSizes takes in what snapshots hold that are still there.
func (z *zpool) learnSizes(rows []row) {
	if z == nil {
		return
	}
	measured := map[string]row{}
	for _, r := range rows {
		measured[r.name] = r
	}
	for of, d := range z.datasets {
		for _, at := range slices.Collect(maps.Keys(d.snapshots)) {
			if r, ok := measured[of+"@"+at]; ok && d.snapshots[at].estimated {
				d.snapshots[at] = newSnapshot(at, r)
			}
		}
	}
}
