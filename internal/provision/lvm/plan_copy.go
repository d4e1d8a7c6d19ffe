package lvm

import (
	"fmt"

	"berth.dev/berth/internal/provision"
)

// planCow decides about a copy-on-write snapshot for a copy that is not there.
func (g *group) planCow(id, of string) (size int64, err error) {
	name := cowName(id)
	switch {
	case g.pending[id] != nil, g.wiping[name] != nil:
		// What it kept is of a moment before whoever asks now did ask.
		return 0, fmt.Errorf("%w: logical volume %s/%s is left of an attempt before, and is being removed", provision.ErrUnavailable, g.name, name)
	case g.others[name]:
		return 0, g.notOurs(name)
	}
	return g.round(cowSize(g.volumes[of].size)), nil
}

// besides is what has to be made besides a copy of a volume, in bytes.
func (g *group) besides(id, of string) int64 {
	if v := g.volumes[of]; v != nil && v.pool == "" && g.pending[id] == nil {
		return g.round(cowSize(v.size))
	}
	return 0
}

// kept is nil if what a copy is to hold is there, in a copy-on-write snapshot.
func (g *group) kept(id string) error {
	if left := g.pending[id]; left == nil || left.cow == nil || left.cow.broken {
		return fmt.Errorf("%w: logical volume %s/%s, which kept what %s was to hold, is gone", provision.ErrUnavailable, g.name, cowName(id), id)
	}
	return nil
}

// planWhole is for a copy that holds all that it shall.
func (g *group) planWhole(id string) (done bool, size int64, err error) {
	switch {
	case g == nil || g.find(id) == nil || !g.find(id).copying:
		return true, 0, nil
	case g.missing:
		return false, 0, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.name)
	}
	return false, g.find(id).size, nil
}

// planDrop is for a copy-on-write snapshot that nobody needs.
func (g *group) planDrop(id string) (done bool, size int64, err error) {
	switch {
	case g == nil || g.next(id) != todoDrop:
		return true, 0, nil
	case g.missing:
		return false, 0, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.name)
	}
	return false, 0, nil
}

// settled forgets about a copy if nothing is left to do about it.
func (g *group) settled(id string) {
	if left, c := g.pending[id], g.find(id); left != nil && left.cow == nil && (c == nil || !c.copying) {
		delete(g.pending, id)
	}
}

// fillsFrom is what a copy is filled from, and how much of it.
func (g *group) fillsFrom(id string) (lv string, size int64) {
	if source := g.filledFrom(id); source != "" {
		if s := g.snapshots[source]; s != nil {
			return source, s.size
		}
		return source, 0
	}
	if s := g.snapshots[id]; s != nil {
		return cowName(id), s.size
	}
	if left := g.pending[id]; left != nil && left.cow != nil && g.volumes[left.cow.of] != nil {
		return cowName(id), g.volumes[left.cow.of].size // which does not grow meanwhile
	}
	return cowName(id), 0
}
