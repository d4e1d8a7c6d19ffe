package lvm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// remnant is what a deleted volume left in a group: its logical volume, which takes
// room until it is wiped and removed. It is no volume any more and never again.
type remnant struct {
	size   int64
	how    provision.Wipe
	inline provision.Inline
	// wiped is how many bytes from its beginning need not be wiped again.
	wiped int64
	// strange is a layout that others gave it, of which wiping need not reach all that
	// stores it: zeros that are in a cache cover nothing once the cache is gone.
	strange string
	// suspended is what a command leaves that dies while it changes the device: who writes
	// to it waits until it is resumed.
	suspended bool
	tries
}

// strange returns a layout unless all that stores such a logical volume is written when
// it is.
func strange(layout string) string {
	for word := range strings.SplitSeq(layout, ",") {
		if word != "linear" && word != "striped" && !strings.HasPrefix(word, "raid") && word != "" {
			return layout
		}
	}
	return ""
}

// bury makes a volume what a deleted one left.
func (g *group) bury(id string) {
	c := g.find(id)
	if c == nil {
		return
	}
	r := &remnant{size: c.size, how: c.wipe, suspended: c.suspended}
	if v := g.volumes[id]; v != nil {
		r.inline = v.inline
	}
	g.wiping[id] = r
	g.discard(id)
}

// discard forgets a volume or a snapshot that is gone. Its cow may be there still.
func (g *group) discard(id string) {
	delete(g.volumes, id)
	delete(g.snapshots, id)
	g.settled(id)
}

// remember takes over what became of the tries so far from an older state of the group,
// which may be nil.
func (g *group) remember(old *group) {
	for id, r := range g.wiping {
		if old != nil && old.wiping[id] != nil {
			r.tries = old.wiping[id].tries
		}
	}
	for id, p := range g.pending {
		if old != nil && old.pending[id] != nil {
			p.tries = old.pending[id].tries
		}
	}
}

// remnants are those of the group as the world sees them.
func (g *group) remnants() (left []provision.Volume) {
	for _, id := range slices.Sorted(maps.Keys(g.wiping)) {
		r := g.wiping[id]
		v := provision.Volume{ID: id, Pool: g.ref(""), Size: r.size, Device: g.devicePath(id), Identity: g.identity(id), Inline: r.inline}
		switch {
		case r.suspended:
			v.Problem = "its device is suspended: resume it (lvchange --refresh " + g.name + "/" + id + ")"
		case r.failed != nil:
			v.Problem = provision.Problem(r.failed)
		}
		left = append(left, v)
	}
	return left
}

// planRemove decides whether a remnant may be removed, and before that be wiped.
func (g *group) planRemove(id string) (done bool, err error) {
	if g == nil || g.wiping[id] == nil {
		return true, nil
	}
	if g.missing {
		return false, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.name)
	}
	if other := g.dependents[id]; other != "" {
		return false, fmt.Errorf("%w: logical volume %s/%s is not Berth's and would be removed with it: remove it first", provision.ErrInUse, g.name, other)
	}
	if strange := g.wiping[id].strange; strange != "" {
		return false, fmt.Errorf("%w: others made it %s, and wiping need not reach all that stores it: make it linear again (lvconvert), or zero and remove it by hand",
			provision.ErrUnavailable, strange)
	}
	return false, nil
}

// wipes says whether deleting a volume or a snapshot leaves something to be wiped.
func (s *state) wipes(name, id string) (wipes bool) {
	s.with(name, func(g *group) {
		if g != nil && g.find(id) != nil {
			wipes = g.find(id).pool == "" && g.find(id).wipe != provision.WipeNone
		}
	})
	return wipes
}

// left says whether a deleted volume or snapshot is being wiped, and no other of its id is
// there.
func (s *state) left(id string) (left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.find(id) != nil {
			return false
		}
		left = left || g.wiping[id] != nil
	}
	return left
}

// remains returns the tries of what is to be wiped; what is suspended waits until that is
// mended.
func (g *group) remains() map[string]*tries {
	due := map[string]*tries{}
	for id, r := range g.wiping {
		if !r.suspended {
			due[id] = &r.tries
		}
	}
	return due
}
