package lvm

import (
	"cmp"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
)

// The plans decide from what is known of a group, nil if there is none: whether a
// request is met already, else the size to make, or why it cannot be met.

func (g *group) planCreate(r provision.CreateRequest, now time.Time) (done bool, size int64, err error) {
	if g == nil {
		return false, 0, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	_, thin := split(r.Pool)
	if v := g.volumes[r.ID]; v != nil {
		if v.pool != thin {
			return false, 0, conflictElsewhere(r.ID, g.ref(v.pool))
		}
		if v.size != g.round(r.Size) {
			return false, 0, fmt.Errorf("%w: volume %s exists with %d bytes, not %d", provision.ErrConflict, r.ID, v.size, g.round(r.Size))
		}
		if v.inline != r.Inline {
			return false, 0, fmt.Errorf("%w: volume %s is %q of pod %q, not %q of pod %q", provision.ErrConflict,
				r.ID, v.inline.Name, v.inline.PodUID, r.Inline.Name, r.Inline.PodUID)
		}
		if v.source != r.Source {
			return false, 0, fmt.Errorf("%w: volume %s began as a copy of %q, not of %q", provision.ErrConflict, r.ID, sourceID(v.source), sourceID(r.Source))
		}
		return true, v.size, nil
	}
	if g.missing {
		return false, 0, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.name)
	}
	if g.wiping[r.ID] != nil {
		return false, 0, fmt.Errorf("%w: volume %s was deleted, and what it left in volume group %s is being wiped", provision.ErrUnavailable, r.ID, g.name)
	}
	if g.others[r.ID] {
		return false, 0, g.notOurs(r.ID)
	}
	if thin != "" && g.pools[thin] == nil {
		return false, 0, noThinPool(r.Pool.Name)
	}
	if err := g.usable(thin, now); err != nil {
		return false, 0, err
	}
	if _, err := g.source(r); err != nil {
		return false, 0, err
	}
	if err := g.admitsRecord(); err != nil {
		return false, 0, err
	}
	size = g.round(r.Size)
	return false, size, r.Limits.Admit(g.figures(thin), size+g.besides(r.ID, r.Source.Volume))
}

func (g *group) notOurs(id string) error {
	return fmt.Errorf("%w: logical volume %s/%s exists and is not Berth's: rename or remove it", provision.ErrConflict, g.name, id)
}

func (g *group) planExpand(r provision.ExpandRequest, now time.Time) (done bool, size int64, err error) {
	v, err := g.volume(r.ID)
	if err != nil {
		return false, 0, err
	}
	size = g.round(r.Size)
	if size <= v.size {
		return g.planGrowth(r.ID, now)
	}
	if by := g.needed(r.ID); by != "" || g.pending[r.ID] != nil {
		return false, 0, fmt.Errorf("%w: volume %s can grow once %s is copied", provision.ErrUnavailable, r.ID, cmp.Or(by, "it"))
	}
	return false, size, cmp.Or(g.usable(v.pool, now), r.Limits.Admit(g.figures(v.pool), size-v.size))
}

// planDelete trusts only a fresh report about who has the device open.
func (g *group) planDelete(id string, fresh bool) (done bool, size int64, err error) {
	if g == nil || g.find(id) == nil {
		return true, 0, nil
	}
	if g.missing {
		return false, 0, fmt.Errorf("%w: volume group %s is missing and holds %s", provision.ErrPoolMissing, g.name, id)
	}
	if by := g.needed(id); by != "" {
		return false, 0, fmt.Errorf("%w: %s is being copied to %s", provision.ErrInUse, id, by)
	}
	if fresh && g.find(id).open {
		return false, 0, fmt.Errorf("%w: %s is open", provision.ErrInUse, id)
	}
	if other := g.dependents[id]; other != "" {
		return false, 0, fmt.Errorf("%w: logical volume %s/%s is not Berth's and would be removed with %s: remove it first", provision.ErrInUse, g.name, other, id)
	}
	return false, 0, nil
}

// answers returns why a change would wait for ever, and be made at some time when nobody
// reckons with it, or would be made of another group. Whatever else is wrong with a pool, what is in it may be removed, if LVM
// can.
func (g *group) answers(thin string, now time.Time) error {
	if g.refused != "" || g.silent != nil || g.stuck(now) || g.pools[thin] != nil && g.pools[thin].suspended {
		return fmt.Errorf("%w: pool %s: %s", provision.ErrUnavailable, g.ref(thin).Name, g.poolTrouble(thin, now))
	}
	return nil
}

func (g *group) planRecord(id, filesystem string) (done bool, size int64, err error) {
	v, err := g.volume(id)
	if err != nil {
		return false, 0, err
	}
	if v.filesystem != "" && v.filesystem != filesystem {
		return false, 0, fmt.Errorf("%w: volume %s is recorded as %s", provision.ErrConflict, id, v.filesystem)
	}
	return v.filesystem == filesystem, v.size, nil
}

func (g *group) volume(id string) (*volume, error) {
	if g == nil || g.volumes[id] == nil {
		return nil, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	}
	return g.volumes[id], nil
}

func (g *group) usable(thin string, now time.Time) error {
	t := g.poolTrouble(thin, now)
	if t == "" {
		return nil
	}
	class := provision.ErrUnavailable
	if p := g.pools[thin]; p != nil && p.kernel.mode == modeOutOfData {
		class = provision.ErrNoSpace // which sends a volume elsewhere
	}
	return fmt.Errorf("%w: pool %s: %s", class, g.ref(thin).Name, t)
}
