package group

import (
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
)

// Creatable returns the size in bytes of a volume that is to be made, or says that it is there,
// or why it cannot be made.
func (p Planner) Creatable(g *Facts, r provision.CreateRequest) (size int64, there bool, err error) {
	if g == nil {
		return 0, false, fmt.Errorf("%w: %s", provision.ErrPoolMissing, r.Pool.Name)
	}
	_, thin := Split(r.Pool)
	if v := g.Volumes[r.ID]; v != nil {
		if v.Pool != thin {
			return 0, false, ConflictElsewhere(r.ID, g.Ref(v.Pool))
		}
		if v.size != g.round(r.Size) {
			return 0, false, fmt.Errorf("%w: volume %s exists with %d bytes, not %d", provision.ErrConflict, r.ID, v.size, g.round(r.Size))
		}
		if v.inline != r.Inline {
			return 0, false, fmt.Errorf("%w: volume %s is %q of pod %q, not %q of pod %q", provision.ErrConflict,
				r.ID, v.inline.Name, v.inline.PodUID, r.Inline.Name, r.Inline.PodUID)
		}
		if v.source != r.Source {
			return 0, false, fmt.Errorf("%w: volume %s began as a copy of %q, not of %q", provision.ErrConflict, r.ID, SourceID(v.source), SourceID(r.Source))
		}
		return v.size, true, nil
	}
	if g.Missing {
		return 0, false, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.Name)
	}
	if g.Wiping[r.ID] != nil {
		return 0, false, fmt.Errorf("%w: volume %s was deleted, and its data in volume group %s is being wiped", provision.ErrUnavailable, r.ID, g.Name)
	}
	if g.Others[r.ID] {
		return 0, false, g.notOurs(r.ID)
	}
	if thin != "" && g.Pools[thin] == nil {
		return 0, false, NoThinPool(r.Pool.Name)
	}
	if err := g.Usable(thin, p.Now); err != nil {
		return 0, false, err
	}
	if err := copyable(g, r); err != nil {
		return 0, false, err
	}
	if err := g.admitsRecord(); err != nil {
		return 0, false, err
	}
	size = g.round(r.Size)
	return size, false, r.Limits.Admit(g.figures(thin), size+g.besides(r.ID, r.Source.Volume))
}

func (h *holdings) notOurs(id string) error {
	return fmt.Errorf("%w: logical volume %s/%s exists and is not Berth's: rename or remove it", provision.ErrConflict, h.Name, id)
}

// deletable says whether a volume or a snapshot is there, or why it cannot be deleted. A group that
// had it and is not known any more may have another name now, and the volume in it. Only a fresh
// report counts as proof that the device is open.
func deletable(g *Facts, id string, fresh bool) (there bool, err error) {
	if g == nil {
		return false, fmt.Errorf("%w: the volume group that held %s is gone, or has another name", provision.ErrUnavailable, id)
	}
	if g.Find(id) == nil {
		return false, nil
	}
	if g.Missing {
		return true, fmt.Errorf("%w: volume group %s is missing and holds %s", provision.ErrPoolMissing, g.Name, id)
	}
	if by := g.needed(id); by != "" {
		return true, fmt.Errorf("%w: %s is being copied to %s", provision.ErrInUse, id, by)
	}
	if fresh && g.Find(id).open {
		return true, fmt.Errorf("%w: %s is open", provision.ErrInUse, id)
	}
	if other := g.dependents[id]; other != "" {
		return true, fmt.Errorf("%w: logical volume %s/%s is not Berth's and would be removed with %s: remove it first", provision.ErrInUse, g.Name, other, id)
	}
	return true, nil
}

// Answers returns why a change would wait for ever and take effect when no caller expects it, or
// would change another group. Any other trouble of a pool does not prevent a removal from it, if
// LVM can make the removal.
func (g *Facts) Answers(thin string, now time.Time) error {
	if g.Refused != "" || g.Silent != nil || g.Stuck(now) || g.Pools[thin] != nil && g.Pools[thin].Suspended {
		return fmt.Errorf("%w: pool %s: %s", provision.ErrUnavailable, g.Ref(thin).Name, g.poolTrouble(thin, now))
	}
	return nil
}

// find returns a volume of a group, which may be nil; ErrNotFound if there is none.
func find(g *Facts, id string) (*volume, error) {
	if g == nil || g.Volumes[id] == nil {
		return nil, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	}
	return g.Volumes[id], nil
}

// Usable returns why nothing new may be placed in a thin pool of the group, or in the group itself
// with an empty name.
func (g *Facts) Usable(thin string, now time.Time) error {
	t := g.poolTrouble(thin, now)
	if t == "" {
		return nil
	}
	class := provision.ErrUnavailable
	if p := g.Pools[thin]; p != nil && p.Kernel.mode == modeOutOfData {
		class = provision.ErrNoSpace // which sends a volume elsewhere
	}
	return fmt.Errorf("%w: pool %s: %s", class, g.Ref(thin).Name, t)
}

// ConflictElsewhere says that a volume exists in another pool than it is asked for in.
func ConflictElsewhere(id string, pool provision.PoolRef) error {
	return fmt.Errorf("%w: volume %s exists in pool %s", provision.ErrConflict, id, pool.Name)
}
