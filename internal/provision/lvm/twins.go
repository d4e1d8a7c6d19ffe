package lvm

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
)

// holders returns the pools that hold a volume or a snapshot of an id. A missing group counts
// only if no other group holds the id: otherwise an imported copy that was removed again would
// block the id for ever. The callers that know a volume's object see to it that the volume is
// used only in the pool that the object names. The caller holds the state's lock.
func (s *state) holders(id string) []provision.PoolRef {
	var there, away []provision.PoolRef
	for _, g := range s.Units() {
		switch c := g.Find(id); {
		case c == nil:
		case g.Missing:
			away = append(away, g.Ref(c.Pool))
		default:
			there = append(there, g.Ref(c.Pool))
		}
	}
	if len(there) == 0 {
		return away
	}
	return there
}

// twins returns why an id cannot be used if two groups hold it. One cause is a copy of a disk
// that was imported (vgimportclone). Guessing which is right could destroy data. The caller holds
// the state's lock.
func (s *state) twins(id string) error {
	pools := s.holders(id)
	if len(pools) < 2 {
		return nil
	}
	var names []string
	for _, p := range pools {
		group, _ := group.Split(p)
		names = append(names, group+"/"+id)
	}
	slices.Sort(names)
	return fmt.Errorf("%w: logical volumes %s bear one id, and none of them is used: rename those that are copies (lvrename), or deactivate their group and take its disk away",
		provision.ErrConflict, strings.Join(names, " and "))
}

// markTwins sets a problem on each volume and snapshot that is in several pools.
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
