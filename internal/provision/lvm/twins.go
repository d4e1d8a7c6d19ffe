package lvm

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// holders returns the pools that hold a volume or a snapshot of an id. It is called within
// with.
func (s *state) holders(id string) (pools []provision.PoolRef) {
	for _, g := range s.groups {
		if c := g.find(id); c != nil {
			pools = append(pools, g.ref(c.pool))
		}
	}
	return pools
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
	seen := map[string]int{}
	each := func(f func(id string, problem *string)) {
		for _, p := range pools {
			for i := range p.Volumes {
				f(p.Volumes[i].ID, &p.Volumes[i].Problem)
			}
			for i := range p.Snapshots {
				f(p.Snapshots[i].ID, &p.Snapshots[i].Problem)
			}
		}
	}
	each(func(id string, _ *string) { seen[id]++ })
	each(func(id string, problem *string) {
		if seen[id] > 1 {
			*problem = s.twins(id).Error()
		}
	})
}
