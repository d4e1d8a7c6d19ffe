package zfs

import (
	"cmp"
	"fmt"
	"strconv"

	"berth.dev/berth/internal/provision"
)

// planContent plans what makes a volume in the area of new ones, and says how much
// room it needs.
func (p *Provisioner) planContent(z *zpool, r provision.CreateRequest, size int64) (steps []step, needs int64, err error) {
	if r.Source == (provision.Source{}) {
		return []step{p.blankStep(r, size)}, size, nil
	}
	from, filesystem, held := "", "", int64(0)
	if r.Source.Snapshot != "" {
		of, s := z.snapshot(r.Source.Snapshot)
		if s == nil {
			return nil, 0, fmt.Errorf("%w: snapshot %s", provision.ErrNotFound, r.Source.Snapshot)
		}
		if err := cmp.Or(r.Fits(poolRef(z.datasets[of].parent), s.size), z.datasets[of].likeSource(r)); err != nil {
			return nil, 0, err
		}
		from, filesystem = of+"@"+r.Source.Snapshot, s.filesystem
	} else {
		of, d := z.volume(r.Source.Volume)
		if d == nil {
			return nil, 0, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Source.Volume)
		}
		if err := cmp.Or(r.Fits(poolRef(d.parent), d.size), d.likeSource(r)); err != nil {
			return nil, 0, err
		}
		at := d.baseName(r.ID)
		steps = append(steps, p.snapshotStep(of, d, at, ""))
		// What the base holds stays when its volume is overwritten.
		from, filesystem, held = of+"@"+at, d.filesystem, d.size
	}
	return append(steps, p.cloneSteps(r, size, filesystem, from)...), size + held, nil
}

// baseName is a name for the base of a clone that is not taken.
func (d *dataset) baseName(id string) string {
	for n := 1; ; n++ {
		if name := basePrefix + id + "." + strconv.Itoa(n); d.snapshots[name] == nil {
			return name
		}
	}
}

func (p *Provisioner) blankStep(r provision.CreateRequest, size int64) step {
	parent, _ := datasetOf(r.Pool)
	name := freshName(parent, r.ID)
	return step{
		command: p.config.createCommand(r, size, name),
		learn: func(z *zpool) {
			z.datasets[name] = &dataset{
				parent: parent, area: fresh, kind: kindOf(r), id: r.ID, size: size, quota: size, reserved: true,
				record: record{inline: r.Inline, source: r.Source}, snapshots: map[string]*snapshot{},
			}
		},
	}
}

func (p *Provisioner) cloneSteps(r provision.CreateRequest, size int64, filesystem, from string) []step {
	parent, _ := datasetOf(r.Pool)
	name := freshName(parent, r.ID)
	files := r.Filesystem == provision.Dataset
	clone := step{
		command: p.config.cloneCommand(r, filesystem, from, name),
		learn: func(z *zpool) {
			z.datasets[name] = &dataset{
				parent: parent, area: fresh, kind: kindOf(r), id: r.ID, size: size, quota: size, reserved: files, origin: from,
				record: record{filesystem: filesystem, inline: r.Inline, source: r.Source}, snapshots: map[string]*snapshot{},
			}
		},
	}
	if files {
		clone.command = p.config.cloneDatasetCommand(r, size, filesystem, from, name)
		return []step{clone}
	}
	reserve := step{
		command: p.config.reserveCommand(name, size),
		learn:   func(z *zpool) { z.datasets[name].reserved = true },
	}
	return []step{clone, reserve}
}
