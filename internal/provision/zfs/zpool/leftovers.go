package zpool

import (
	"maps"
	"slices"
)

// Untidy returns the datasets that have leftovers, in a stable order.
func (p Planner) Untidy(z *Facts) []string {
	if z == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(z.Datasets))
	names = append(names, slices.Sorted(maps.Keys(z.Copies))...)
	return slices.DeleteFunc(names, func(name string) bool { return len(p.Leftovers(z, name)) == 0 })
}

// base returns the base of a clone that is not dropped yet; empty if there is none.
func (d *Dataset) base() string {
	for at, s := range d.snapshots {
		if s.base && !s.deferred {
			return at
		}
	}
	return ""
}

// Leftovers plans the next step that removes leftovers of one dataset. Each step changes the
// facts, so that there is an end to it.
func (p Planner) Leftovers(z *Facts, name string) []Step {
	if z == nil || z.Unfit != "" || z.Answers(p.Now) != nil {
		return nil
	}
	if c := z.Copies[name]; c != nil {
		return CopyPlanner{p}.copyLeftovers(CopiesIn(z), c)
	}
	d := z.Datasets[name]
	if d == nil {
		return nil
	}
	at := d.base()
	switch {
	case at != "":
		return []Step{p.DropStep(z, name, at)}
	case d.ahead():
		return []Step{p.quotaStep(name, d.size)}
	case d.short:
		return []Step{p.fillStep(name)}
	case d.area != trash || d.ends && z.Copies[CopyName(d.Parent, d.ID)] != nil:
		return nil
	case len(d.snapshots) == 0:
		return []Step{p.destroyStep(z, name)}
	case d.ends:
		return []Step{p.moveStep(z, name, z.trashName(d.Parent, d.ID, ""), trash)}
	case d.reserved:
		return []Step{{Command: p.releaseCommand(name), Learn: func(z *Facts) { z.Datasets[name].reserved = false }}}
	case d.dirty:
		// Nothing needs the data that was written since the last snapshot.
		return []Step{{
			Command: p.rollbackCommand(name + "@" + d.newest()), Subject: subject(z, name, d.newest()),
			Learn: func(z *Facts) { z.Datasets[name].dirty = false },
		}}
	}
	return nil
}

// atOnce bounds how many snapshots are read by one process.
const atOnce = 100

// Unmeasured returns snapshots of which it is not known how much they hold, atOnce at most.
func (z *Facts) Unmeasured() (names []string) {
	for of, d := range z.Datasets {
		for at, s := range d.snapshots {
			if s.estimated {
				names = append(names, of+"@"+at)
			}
		}
	}
	slices.Sort(names)
	return names[:min(len(names), atOnce)]
}

// LearnSizes takes in how much the snapshots hold that are still there.
func (z *Facts) LearnSizes(rows []Row) {
	if z == nil {
		return
	}
	measured := map[string]Row{}
	for _, r := range rows {
		measured[r.name] = r
	}
	for of, d := range z.Datasets {
		for _, at := range slices.Collect(maps.Keys(d.snapshots)) {
			if r, ok := measured[of+"@"+at]; ok && d.snapshots[at].estimated {
				d.snapshots[at] = newSnapshot(at, r)
			}
		}
	}
}
