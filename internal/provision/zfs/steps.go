package zfs

import (
	"context"

	"berth.dev/berth/internal/run"
)

// step is one ZFS process.
type step struct {
	command run.Command
	// check, if set, says why the step must not be taken.
	check func() error
	// begun, if set, is called when the step is taken, whatever comes of it.
	begun func()
	// settle, if set, waits for those who hold what the step needs for a moment only.
	settle func(ctx context.Context)
	// learn puts the step into what is known.
	learn func(z *zpool)
	// takes is how much room of a pool it takes for good, in bytes, and parent which pool.
	takes  int64
	parent string
}

// areaSteps make an area of a pool unless it is there. ZFS hides it a moment after it made it, and
// a loss of power may come between.
func (p *Provisioner) areaSteps(z *zpool, parent string, a area) []step {
	name := parent + "/" + string(a)
	hidden, there := z.areas[name]
	if hidden {
		return nil
	}
	command := p.config.areaCommand(name)
	if there {
		command = p.config.hideCommand(name)
	}
	return []step{{command: command, learn: func(z *zpool) { z.areas[name] = true }}}
}

// moveStep renames a volume into an area, which is where it is from one moment to the
// next.
func (p *Provisioner) moveStep(from, to string, where area) step {
	return step{
		command: p.config.renameCommand(from, to),
		learn: func(z *zpool) {
			d := z.datasets[from]
			delete(z.datasets, from)
			d.area, d.dirty = where, true
			z.datasets[to] = d
			for _, other := range z.datasets { // the origin of a clone is known by its present name
				if at, ok := cutOrigin(other.origin, from); ok {
					other.origin = to + "@" + at
				}
			}
			p.config.Devices.Forget(from)
		},
	}
}

// destroyStep removes a volume without snapshots.
func (p *Provisioner) destroyStep(name string, d *dataset) step {
	s := step{
		command: p.config.destroyCommand(name),
		settle:  func(ctx context.Context) { p.config.Devices.Settle(ctx, name) },
		learn: func(z *zpool) {
			d := z.datasets[name]
			delete(z.datasets, name)
			z.unclone(d.origin)
			p.config.Devices.Forget(name)
		},
	}
	if d.files() {
		s.settle, s.check = nil, func() error { return p.unmounted(name, d) }
	}
	return s
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
