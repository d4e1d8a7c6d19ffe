package lvm

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// holders returns the pools that hold a volume or a snapshot of an id. What a group held that is
// away counts while no other has it: else a copy that was imported, and removed, would stand in
// the way for ever. That a volume is used only in the pool which its object names is for those to
// see to who know the object. It is called within with.
func (s *state) holders(id string) []provision.PoolRef {
	var there, away []provision.PoolRef
	for _, g := range s.groups {
		switch c := g.find(id); {
		case c == nil:
		case g.missing:
			away = append(away, g.ref(c.pool))
		default:
			there = append(there, g.ref(c.pool))
		}
	}
	if len(there) == 0 {
		return away
	}
	return there
}

// twins returns why an id is of no use, if two groups hold it: a copy of a disk that was
// imported (vgimportclone), for one. Guessing which is right could destroy data. It is called
// within with.
func (s *state) twins(id string) error {
	pools := s.holders(id)
	if len(pools) < 2 {
		return nil
	}
	var names []string
	for _, p := range pools {
		group, _ := split(p)
		names = append(names, group+"/"+id)
	}
	slices.Sort(names)
	return fmt.Errorf("%w: logical volumes %s bear one id, and none of them is used: rename those that are copies (lvrename), or deactivate their group and take its disk away",
		provision.ErrConflict, strings.Join(names, " and "))
}

// markTwins gives what is in several pools the problem that it is.
func (s *state) markTwins(pools []provision.Pool) {
	mark := func(id string, problem *string) {
		if err := s.twins(id); err != nil {
			*problem = err.Error()
		}
	}
	for _, p := range pools {
		for i := range p.Volumes {
			mark(p.Volumes[i].ID, &p.Volumes[i].Problem)
		}
		for i := range p.Snapshots {
			mark(p.Snapshots[i].ID, &p.Snapshots[i].Problem)
		}
	}
}
