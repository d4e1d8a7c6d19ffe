package zpool

import (
	"cmp"
	"fmt"
	"strconv"

	"berth.dev/berth/internal/provision"
)

// planContent plans the steps that make a volume, and says how much room they need, in bytes.
func (p Planner) planContent(z *Facts, r provision.CreateRequest, size int64, name string) (steps []Step, needs int64, err error) {
	if r.Source == (provision.Source{}) {
		return []Step{p.blankStep(r, size, name)}, size, nil
	}
	if r.Source.Snapshot != "" {
		of, s := z.Snapshot(r.Source.Snapshot)
		if s == nil {
			return nil, 0, fmt.Errorf("%w: snapshot %s", provision.ErrNotFound, r.Source.Snapshot)
		}
		if err := cmp.Or(r.Fits(PoolRef(z.Datasets[of].Parent), s.size), z.Datasets[of].likeSource(r)); err != nil {
			return nil, 0, err
		}
		return []Step{p.cloneStep(r, size, name, original{of + "@" + r.Source.Snapshot, s.filesystem, s.size})}, size, nil
	}
	of, d := z.Volume(r.Source.Volume)
	if d == nil {
		return nil, 0, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Source.Volume)
	}
	if err := cmp.Or(r.Fits(PoolRef(d.Parent), d.size), d.likeSource(r)); err != nil {
		return nil, 0, err
	}
	at := d.baseName(r.ID)
	// The base keeps its data when its volume is overwritten.
	return []Step{p.snapshotStep(of, d, at), p.cloneStep(r, size, name, original{of + "@" + at, d.Filesystem, d.size})}, size + d.size, nil
}

// baseName returns a free name for the base of a clone.
func (d *Dataset) baseName(id string) string {
	for n := 1; ; n++ {
		if name := basePrefix + id + "." + strconv.Itoa(n); d.snapshots[name] == nil {
			return name
		}
	}
}

func (p Planner) blankStep(r provision.CreateRequest, size int64, name string) Step {
	return Step{Command: p.createCommand(r, size, name), Learn: learnNew(r, size, name, original{})}
}

func (p Planner) cloneStep(r provision.CreateRequest, size int64, name string, of original) Step {
	return Step{Command: p.cloneCommand(r, size, of, name), Learn: learnNew(r, size, name, of)}
}

// learnNew puts a new volume into the facts.
func learnNew(r provision.CreateRequest, size int64, name string, of original) func(z *Facts) {
	parent, _ := DatasetOf(r.Pool)
	return func(z *Facts) {
		z.Datasets[name] = &Dataset{
			Parent: parent, area: live, kind: kindOf(r), ID: r.ID, size: size, quota: size, reserved: true, origin: of.snapshot,
			record: record{Filesystem: of.filesystem, inline: r.Inline, source: r.Source, claim: provision.ClaimOf(r.Labels)}, snapshots: map[string]*Snapshot{},
		}
	}
}
