package zpool

import (
	"strings"
	"time"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/run"
)

// Change is a change of a zpool.
type Change = engine.Change[*Facts]

// Step is one ZFS process.
type Step struct {
	Command run.Command
	// Subject, if set, must be there as it was planned when the step is taken.
	Subject *Subject
	// Unused, if set, is a use that a volume must not have when the step is taken.
	Unused *Use
	// Settles is a zvol at which udev may look for a moment, which makes the step fail.
	Settles string
	// Forgets is a zvol that is not there any more after the step.
	Forgets string
	// Makes says that a volume may be there once the step was begun, even if it failed.
	Makes bool
	// Learn puts the effect of the step into the facts.
	Learn func(z *Facts)
	// Takes is how much room the step takes for good, in bytes, and Parent the pool that it is in.
	Takes  int64
	Parent string
}

// Name tells a step from others.
func (s Step) Name() string { return strings.Join(s.Command.Args, " ") }

// Use is a use of a volume by a pod, as the kernel shows it.
type Use struct {
	Dataset string
	// Mounted asks whether a dataset is mounted, else whether a zvol is claimed.
	Mounted bool
	// Refusal is the error if it is.
	Refusal error
}

// Planner plans steps in a zpool. It knows the time, and has no effect.
type Planner struct {
	Tool
	Now time.Time
}

// areaSteps make an area of a pool unless it is there. ZFS makes it and hides it a moment later,
// and a loss of power may come in between.
func (p Planner) areaSteps(z *Facts, parent string, a area) []Step {
	name := parent + "/" + string(a)
	hidden, there := z.areas[name]
	if hidden {
		return nil
	}
	command := p.areaCommand(name)
	if there {
		command = p.hideCommand(name)
	}
	return []Step{{Command: command, Learn: func(z *Facts) { z.areas[name] = true }}}
}

// moveStep renames a volume into an area. The rename is atomic.
func (p Planner) moveStep(z *Facts, from, to string, where area) Step {
	return Step{
		Subject: subject(z, from, ""),
		Command: p.renameCommand(from, to),
		Forgets: from,
		Learn: func(z *Facts) {
			d := z.Datasets[from]
			delete(z.Datasets, from)
			d.area, d.dirty, d.strand, d.wasHead, d.stands, d.ends = where, true, 0, false, false, where == trash && endsCopy(to)
			z.Datasets[to] = d
			for _, other := range z.Datasets { // the origin of a clone is known by its present name
				if at, ok := cutOrigin(other.origin, from); ok {
					other.origin = to + "@" + at
				}
			}
		},
	}
}

// destroyStep removes a volume without snapshots.
func (p Planner) destroyStep(z *Facts, name string) Step {
	s := Step{
		Command: p.destroyCommand(name), Subject: subject(z, name, ""), Settles: name, Forgets: name,
		Learn: func(z *Facts) {
			d := z.Datasets[name]
			delete(z.Datasets, name)
			z.unclone(d.origin)
		},
	}
	if d := z.Datasets[name]; d.Files() {
		s.Settles, s.Unused = "", d.unmounted(name)
	}
	return s
}

// unclone notes that a clone of a snapshot went. A deferred snapshot goes with its last clone.
func (z *Facts) unclone(origin string) {
	of, at, _ := strings.Cut(origin, "@")
	if d := z.Datasets[of]; d != nil && d.snapshots[at] != nil && d.snapshots[at].deferred && !z.cloned(origin) {
		delete(d.snapshots, at)
	}
}
