package zpool

import (
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/run"
)

// A copy is tidied as other leftovers are: nothing is destroyed that the record names, and nothing
// recursively. A snapshot cannot go before its clones. If its strand has nothing newer that counts, a
// clone takes the snapshots over (zfs promote), and then strand and snapshot can go. Else they wait.

// promoteCommand has a clone take over its origin, with the snapshots before that.
func (t CopyTool) promoteCommand(clone string) run.Command { return t.Command("promote", clone) }

// copyLeftovers plans the next step that removes leftovers of a copy.
func (p CopyPlanner) copyLeftovers(z CopyFacts, c *Copy) []Step {
	deleted := len(z.ending(c.Parent, c.ID)) > 0
	if !deleted && (c.Damage != nil || !c.Exists) {
		return nil
	}
	parts := z.parts(c)
	names := slices.Sorted(maps.Keys(parts))
	// Strands without snapshots go before others: they would be heirs of each other.
	for _, leftover := range []func(CopyFacts, *Copy, string, bool) (Step, bool){p.halfHead, p.emptyStrand, p.pointLeftover, p.strandLeftover} {
		for _, name := range names {
			if step, ok := leftover(z, c, name, deleted); ok {
				return []Step{step}
			}
		}
	}
	if deleted && !slices.ContainsFunc(names, func(name string) bool { return parts[name].area == copies }) {
		return p.endSteps(c)
	}
	return nil
}

// halfHead removes a head that a loss of power left half made: it would hold its point for ever. Its
// origin shows that Berth made it.
func (p CopyPlanner) halfHead(z CopyFacts, c *Copy, name string, _ bool) (Step, bool) {
	if d := z.Datasets[name]; !d.unfinished || !strings.HasPrefix(d.origin, CopyName(c.Parent, c.ID)+"/") {
		return Step{}, false
	}
	return p.destroyStep(z.Facts, name), true
}

// pointLeftover removes a snapshot that the record does not name, or has a clone take it over.
func (p CopyPlanner) pointLeftover(z CopyFacts, c *Copy, name string, deleted bool) (Step, bool) {
	d := z.Datasets[name]
	for _, at := range slices.Sorted(maps.Keys(d.snapshots)) {
		s := d.snapshots[at]
		if s.place == 0 || !deleted && !c.Leftover(s.place) {
			continue
		}
		if !z.cloned(name + "@" + at) {
			return p.DropStep(z.Facts, name, at), true
		}
		if clone := z.heir(c, name, at); clone != "" {
			return p.promoteStep(z, name, at, clone), true
		}
	}
	return Step{}, false
}

// heir returns a clone that can take a snapshot over, if its dataset is of no use beyond that.
func (z CopyFacts) heir(c *Copy, name, at string) string {
	d := z.Datasets[name]
	if d.area != copies || d.stands || c.Receiving != nil && d.strand == c.Receiving.Place {
		return ""
	}
	for _, s := range d.snapshots {
		if s.order > d.snapshots[at].order {
			return ""
		}
	}
	parts := z.parts(c)
	for _, other := range slices.Sorted(maps.Keys(parts)) {
		if parts[other].origin == name+"@"+at && parts[other].token == "" {
			return other
		}
	}
	return ""
}

func (p CopyPlanner) promoteStep(z CopyFacts, name, at, clone string) Step {
	return Step{
		Subject: subject(z.Facts, name, at), Command: CopyTool{p.Tool}.promoteCommand(clone),
		Learn: func(z *Facts) {
			d, heir := z.Datasets[name], z.Datasets[clone]
			last := d.snapshots[at].order
			for moved, s := range d.snapshots {
				if s.order > last {
					continue
				}
				heir.snapshots[moved] = s
				delete(d.snapshots, moved)
				for _, other := range z.Datasets {
					if other.origin == name+"@"+moved {
						other.origin = clone + "@" + moved
					}
				}
			}
			heir.origin, d.origin = d.origin, clone+"@"+at
		},
	}
}

// idle says that a strand is of use only for its snapshots.
func (c *Copy) idle(d *Dataset, deleted bool) bool {
	receiving := c.Receiving != nil && d.strand == c.Receiving.Place && !deleted
	return d.area == copies && !receiving && !d.stands
}

// emptyStrand removes a strand without snapshots.
func (p CopyPlanner) emptyStrand(z CopyFacts, c *Copy, name string, deleted bool) (Step, bool) {
	if d := z.Datasets[name]; !c.idle(d, deleted) || len(d.snapshots) > 0 {
		return Step{}, false
	}
	return p.destroyStep(z.Facts, name), true
}

// strandLeftover removes the room and the data of a strand that only its snapshots need, or puts one
// with snapshots of a deleted volume into the trash.
func (p CopyPlanner) strandLeftover(z CopyFacts, c *Copy, name string, deleted bool) (Step, bool) {
	d := z.Datasets[name]
	switch {
	case !c.idle(d, deleted):
		return Step{}, false
	case deleted && d.wasHead && !d.pointed():
		return p.moveStep(z.Facts, name, z.trashName(c.Parent, c.ID, ""), trash), true
	case d.reserved:
		return p.releaseStep(name), true
	case d.dirty:
		at := d.newest()
		return Step{
			Command: p.rollbackCommand(name + "@" + at), Subject: subject(z.Facts, name, at), Unused: d.unmounted(name),
			Learn: func(z *Facts) { z.Datasets[name].dirty = false },
		}, true
	}
	return Step{}, false
}

// pointed says whether a dataset has points of a copy.
func (d *Dataset) pointed() bool {
	for _, s := range d.snapshots {
		if s.place > 0 {
			return true
		}
	}
	return false
}

// endSteps remove the record and the filesystem of a copy that is deleted.
func (p CopyPlanner) endSteps(c *Copy) (steps []Step) {
	name := CopyName(c.Parent, c.ID)
	if c.noted {
		return []Step{{
			Command: p.destroyCommand(name + "/" + recordName),
			Learn: func(z *Facts) {
				if c := z.Copies[name]; c != nil {
					c.noted = false
				}
			},
		}}
	}
	return []Step{{Command: p.destroyCommand(name), Learn: func(z *Facts) { delete(z.Copies, name) }}}
}
