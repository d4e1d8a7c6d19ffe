package lvm

import (
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// A thin copy is a writable thin snapshot of its source. One that is to be larger is
// extended by a second process. What it must have is recorded by the first, so whoever
// finds it smaller knows that nobody has used it yet, and extends it.

// growth makes a copy as large as it must be. Nothing is to be done for one that is,
// nor for a volume that is none.
func (p *Provisioner) growth(pool provision.PoolRef, id string) change {
	name, thin := split(pool)
	return change{
		group: name, id: id, thin: thin,
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planGrowth(id, p.config.Now()) },
		command: func(size int64) run.Command { return p.config.extendCommand(name, id, size) },
		learn: func(g *group, _ int64) {
			if v := g.volumes[id]; v != nil {
				v.growing = false
			}
		},
	}
}

// now is the time as it is recorded.
func (p *Provisioner) now() time.Time { return time.Unix(p.config.Now().Unix(), 0).UTC() }
