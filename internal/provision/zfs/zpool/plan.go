package zpool

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
)

// Expand plans the steps that give a volume at least size bytes.
func (p Planner) Expand(z *Facts, r provision.ExpandRequest, size int64) ([]Step, error) {
	name, d := z.Volume(r.ID)
	if d == nil {
		return nil, NotFound(r.ID)
	}
	if size <= d.size && !d.short {
		return nil, nil
	}
	if err := cmp.Or(z.Usable(p.Now), z.admit(d.Parent, r.Limits, max(0, size-d.size))); err != nil {
		return nil, err
	}
	if d.Files() {
		return []Step{{
			Command: p.growDatasetCommand(name, size),
			Learn:   func(z *Facts) { d := z.Datasets[name]; d.size, d.quota = size, size },
			Takes:   size - d.size, Parent: d.Parent,
		}}, nil
	}
	if size <= d.size {
		return []Step{p.fillStep(name)}, nil
	}
	grow := Step{
		Command: p.growCommand(name, size),
		// When a zvol grows, the kernel takes it for another disk, and drops data of the filesystem
		// on it that is not written yet: seen with ZFS 2.1 on files that were closed.
		Unused: &Use{Dataset: name, Refusal: fmt.Errorf(
			"%w: volume %s is mounted, and would lose data that is not written yet: it grows when no pod uses it", provision.ErrInUse, r.ID)},
		Learn: func(z *Facts) { d := z.Datasets[name]; d.size, d.short = size, true },
		Takes: size - d.size, Parent: d.Parent,
	}
	return []Step{grow, p.fillStep(name)}, nil
}

// fillStep reserves room for all of a zvol that has grown. ZFS does that itself only if the
// reservation was the one that ZFS reckons for the old size. A growth that was cut short may have
// left another.
func (p Planner) fillStep(name string) Step {
	return Step{
		Command: p.fillCommand(name),
		Learn:   func(z *Facts) { z.Datasets[name].short = false },
	}
}

// Record plans the step that records with a volume that it is formatted.
func (p Planner) Record(z *Facts, id, filesystem string) ([]Step, error) {
	name, d := z.Volume(id)
	switch {
	case d == nil:
		return nil, NotFound(id)
	case d.Filesystem == filesystem:
		return nil, nil
	case d.Filesystem != "":
		return nil, fmt.Errorf("%w: volume %s is recorded as %s", provision.ErrConflict, id, d.Filesystem)
	}
	return []Step{{
		Command: p.recordCommand(name, filesystem),
		Learn:   func(z *Facts) { z.Datasets[name].Filesystem = filesystem },
	}}, nil
}

// Delete plans the steps that delete a volume, or the datasets that a crash left of it.
func (p Planner) Delete(z *Facts, id string) ([]Step, error) {
	name, d := z.Volume(id)
	if d == nil {
		if other, taken := z.Taken(id); taken {
			return nil, ConflictTaken(other)
		}
		return p.discardSteps(z, id), nil
	}
	if err := z.Answers(p.Now); err != nil {
		return nil, err
	}
	if len(d.snapshots) == 0 && !CopiesIn(z).copyOf(d).container {
		return []Step{p.destroyStep(z, name)}, nil
	}
	mark := ""
	if CopiesIn(z).copyOf(d).container {
		mark = endMark
	}
	away := p.moveStep(z, name, z.trashName(d.Parent, id, mark), trash)
	away.Unused = d.unmounted(name) // ZFS would rename a mounted dataset
	return append(p.areaSteps(z, d.Parent, trash), away), nil
}

// Snapshot plans the step that takes a snapshot.
func (p Planner) Snapshot(z *Facts, r provision.SnapshotRequest) ([]Step, error) {
	if of, s := z.Snapshot(r.ID); s != nil {
		if d := z.Datasets[of]; d.ID != r.Volume {
			return nil, fmt.Errorf("%w: snapshot %s is of volume %s", provision.ErrConflict, r.ID, d.ID)
		}
		return nil, nil
	}
	name, d := z.Volume(r.Volume)
	switch {
	case d == nil:
		return nil, NotFound(r.Volume)
	case d.snapshots[r.ID] != nil:
		return nil, fmt.Errorf("%w: %s@%s exists and is no snapshot of Berth's, or was deleted and is kept by its clones", provision.ErrConflict, name, r.ID)
	}
	// How much the snapshot will hold is not known before it is taken: all of the volume at most.
	if err := cmp.Or(z.Usable(p.Now), z.admit(d.Parent, r.Limits, d.size)); err != nil {
		return nil, err
	}
	take := p.snapshotStep(name, d, r.ID)
	take.Takes, take.Parent = d.size, d.Parent
	return []Step{take}, nil
}

// snapshotStep takes a snapshot: one of Berth's by its id, or the base of a clone.
func (p Planner) snapshotStep(of string, d *Dataset, at string) Step {
	now := p.Now
	s := &Snapshot{size: d.size, allocated: d.size, filesystem: d.Filesystem, order: d.last() + 1, taken: time.Unix(now.Unix(), 0).UTC()}
	if s.base = strings.HasPrefix(at, basePrefix); !s.base {
		s.id, s.estimated = at, true
	}
	return Step{
		Command: p.snapshotCommand(of, at, snapshotProperties(at, d, now)),
		Learn:   func(z *Facts) { z.Datasets[of].snapshots[at] = s },
	}
}

// DropStep removes a snapshot, at once or with the last of its clones.
func (p Planner) DropStep(z *Facts, of, at string) Step {
	return Step{
		Subject: subject(z, of, at),
		Command: p.dropCommand(of + "@" + at),
		Learn: func(z *Facts) {
			d := z.Datasets[of]
			if !z.cloned(of + "@" + at) {
				delete(d.snapshots, at)
				return
			}
			d.snapshots[at].id, d.snapshots[at].deferred = "", true
		},
	}
}
