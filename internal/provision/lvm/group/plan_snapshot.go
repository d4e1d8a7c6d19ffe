package group

import (
	"cmp"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
)

// Snapshotable returns the size in bytes of a snapshot that is to be taken, or says that it is
// there, or why it cannot be taken.
func (p Planner) Snapshotable(g *Facts, r provision.SnapshotRequest) (size int64, there bool, err error) {
	if g == nil {
		return 0, false, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Volume)
	}
	if s := g.Snapshots[r.ID]; s != nil {
		if s.of != r.Volume {
			return 0, false, fmt.Errorf("%w: snapshot %s is of volume %s", provision.ErrConflict, r.ID, s.of)
		}
		return s.size, true, nil
	}
	if g.Missing {
		return 0, false, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.Name)
	}
	v := g.Volumes[r.Volume]
	switch {
	case v == nil:
		return 0, false, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Volume)
	case g.Others[r.ID]:
		return 0, false, g.notOurs(r.ID)
	case g.Wiping[r.ID] != nil:
		return 0, false, fmt.Errorf("%w: snapshot %s was deleted, and its data in volume group %s is being wiped", provision.ErrUnavailable, r.ID, g.Name)
	}
	room := v.size + g.besides(r.ID, r.Volume)
	return v.size, false, cmp.Or(readable(g, r.Volume), g.Usable(v.Pool, p.Now), g.admitsRecord(), r.Limits.Admit(g.figures(v.Pool), room))
}

// copyable returns why the source of a volume cannot be copied; nil if it can, or if the volume
// begins blank.
func copyable(g *Facts, r provision.CreateRequest) error {
	if r.Source == (provision.Source{}) {
		return nil
	}
	id, found := SourceID(r.Source), g.Find(SourceID(r.Source))
	if found == nil {
		return fmt.Errorf("%w: source %s", provision.ErrNotFound, id)
	}
	return cmp.Or(r.Fits(g.Ref(found.Pool), found.size), readable(g, id))
}

// readable returns nil if the data of one of Berth's logical volumes can be copied.
func readable(g *Facts, id string) error {
	problem := g.damage(id)
	if v := g.Volumes[id]; g.Pending[id] != nil || v != nil && v.Growing {
		problem = "it is still being copied itself"
	}
	if problem == "" {
		return nil
	}
	return fmt.Errorf("%w: %s cannot be copied: %s", provision.ErrUnavailable, id, problem)
}

// Snapshot takes a snapshot of a thin volume.
func (p Planner) Snapshot(g *Facts, r provision.SnapshotRequest) (*Step, error) {
	_, there, err := p.Snapshotable(g, r)
	if there || err != nil {
		return nil, err
	}
	next := p.taken(g, r)
	return &Step{Command: p.snapshotCommand(g.Name, r.ID, next), Thin: next.Pool, Writes: makes(next.Pool), Learn: func(g *Facts) {
		g.Snapshots[r.ID] = &next
	}}, nil
}

// SnapshotWhole makes the logical volume of a thick volume's snapshot, which is to be filled.
func (p Planner) SnapshotWhole(g *Facts, r provision.SnapshotRequest) (*Step, error) {
	size, there, err := p.Snapshotable(g, r)
	if there || err != nil {
		return nil, err
	}
	if err := g.Kept(r.ID); err != nil {
		return nil, err
	}
	next := p.taken(g, r)
	return &Step{Command: p.thickCommand(g.Name, r.ID, size, snapshotTags(r.ID, next)), Makes: r.ID, Learn: func(g *Facts) {
		g.Snapshots[r.ID], g.pendingOf(r.ID).Due = &next, p.Now
	}}, nil
}

// taken returns a snapshot as it is recorded.
func (p Planner) taken(g *Facts, r provision.SnapshotRequest) snapshot {
	return snapshot{carved: snapshotOf(g, r.Volume), of: r.Volume, taken: time.Unix(p.Now.Unix(), 0).UTC()}
}

// snapshotOf returns the facts about a new snapshot of a volume.
func snapshotOf(g *Facts, volume string) carved {
	v := g.Volumes[volume]
	thick := v.Pool == ""
	return carved{Pool: v.Pool, size: v.size, filesystem: v.filesystem, Wipe: v.Wipe, Active: thick, copying: thick}
}
