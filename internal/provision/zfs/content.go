package zfs

import (
	"cmp"
	"fmt"
	"strconv"

	"berth.dev/berth/internal/provision"
)

// planContent plans what makes a volume, and says how much room it needs.
func (p *Provisioner) planContent(z *zpool, r provision.CreateRequest, size int64, name string) (steps []step, needs int64, err error) {
	if r.Source == (provision.Source{}) {
		return []step{p.blankStep(r, size, name)}, size, nil
	}
	if r.Source.Snapshot != "" {
		of, s := z.snapshot(r.Source.Snapshot)
		if s == nil {
			return nil, 0, fmt.Errorf("%w: snapshot %s", provision.ErrNotFound, r.Source.Snapshot)
		}
		if err := cmp.Or(r.Fits(poolRef(z.datasets[of].parent), s.size), z.datasets[of].likeSource(r)); err != nil {
			return nil, 0, err
		}
		return []step{p.cloneStep(r, size, name, original{of + "@" + r.Source.Snapshot, s.filesystem, s.size})}, size, nil
	}
	of, d := z.volume(r.Source.Volume)
	if d == nil {
		return nil, 0, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Source.Volume)
	}
	if err := cmp.Or(r.Fits(poolRef(d.parent), d.size), d.likeSource(r)); err != nil {
		return nil, 0, err
	}
	at := d.baseName(r.ID)
	// What the base holds stays when its volume is overwritten.
	return []step{p.snapshotStep(of, d, at, ""), p.cloneStep(r, size, name, original{of + "@" + at, d.filesystem, d.size})}, size + d.size, nil
}

// baseName is a name for the base of a clone that is not taken.
func (d *dataset) baseName(id string) string {
	for n := 1; ; n++ {
		if name := basePrefix + id + "." + strconv.Itoa(n); d.snapshots[name] == nil {
			return name
		}
	}
}

func (p *Provisioner) blankStep(r provision.CreateRequest, size int64, name string) step {
	return step{command: p.config.createCommand(r, size, name), learn: learnNew(r, size, name, original{})}
}

func (p *Provisioner) cloneStep(r provision.CreateRequest, size int64, name string, of original) step {
	return step{command: p.config.cloneCommand(r, size, of, name), learn: learnNew(r, size, name, of)}
}

// learnNew puts a volume into what is known.
func learnNew(r provision.CreateRequest, size int64, name string, of original) func(z *zpool) {
	parent, _ := datasetOf(r.Pool)
	return func(z *zpool) {
		z.datasets[name] = &dataset{
			parent: parent, area: live, kind: kindOf(r), id: r.ID, size: size, quota: size, reserved: true, origin: of.snapshot,
			record: record{filesystem: of.filesystem, inline: r.Inline, source: r.Source}, snapshots: map[string]*snapshot{},
		}
	}
}
