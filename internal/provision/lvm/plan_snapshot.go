package lvm

import (
	"cmp"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
)

func (g *group) planSnapshot(r provision.SnapshotRequest, now time.Time) (done bool, size int64, err error) {
	if g == nil {
		return false, 0, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Volume)
	}
	if s := g.snapshots[r.ID]; s != nil {
		if s.of != r.Volume {
			return false, 0, fmt.Errorf("%w: snapshot %s is of volume %s", provision.ErrConflict, r.ID, s.of)
		}
		return true, s.size, nil
	}
	if g.missing {
		return false, 0, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.name)
	}
	v := g.volumes[r.Volume]
	switch {
	case v == nil:
		return false, 0, fmt.Errorf("%w: %s", provision.ErrNotFound, r.Volume)
	case g.others[r.ID]:
		return false, 0, g.notOurs(r.ID)
	case g.wiping[r.ID] != nil:
		return false, 0, fmt.Errorf("%w: snapshot %s was deleted, and what it left in volume group %s is being wiped", provision.ErrUnavailable, r.ID, g.name)
	}
	room := v.size + g.besides(r.ID, r.Volume)
	return false, v.size, cmp.Or(g.readable(r.Volume), g.usable(v.pool, now), g.admitsRecord(), r.Limits.Admit(g.figures(v.pool), room))
}

// source returns what a volume is to begin as, or why it cannot; nothing for one that
// begins blank.
func (g *group) source(r provision.CreateRequest) (from carved, err error) {
	if r.Source == (provision.Source{}) {
		return from, nil
	}
	id, found := sourceID(r.Source), g.find(sourceID(r.Source))
	if found == nil {
		return from, fmt.Errorf("%w: source %s", provision.ErrNotFound, id)
	}
	return *found, cmp.Or(r.Fits(g.ref(found.pool), found.size), g.readable(id))
}

// readable is nil if what one of Berth's logical volumes holds can be copied.
func (g *group) readable(id string) error {
	problem := g.damage(id)
	if v := g.volumes[id]; g.pending[id] != nil || v != nil && v.growing {
		problem = "it is still being copied itself"
	}
	if problem == "" {
		return nil
	}
	return fmt.Errorf("%w: %s cannot be copied: %s", provision.ErrUnavailable, id, problem)
}

// planGrowth is for a thin copy that is smaller than it must be. Its size was admitted when it
// was made, and has been counted since.
func (g *group) planGrowth(id string, now time.Time) (done bool, size int64, err error) {
	v, err := g.volume(id)
	if err != nil {
		return false, 0, err
	}
	if !v.growing {
		return true, v.size, nil
	}
	return false, v.size, g.usable(v.pool, now)
}
