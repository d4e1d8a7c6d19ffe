package pools

import (
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
)

// Known returns nil once the node's pools are known.
func (o *Observer) Known() error {
	select {
	case <-o.reported:
		return nil
	default:
		return fmt.Errorf("the node's pools were not listed yet: %w", o.Latest().Err)
	}
}

// Pool returns a pool as the latest report has it, or only its name if the report lacks it.
func (o *Observer) Pool(ref provision.PoolRef) provision.Pool {
	for _, p := range o.Latest().Pools {
		if p.PoolRef == ref {
			return p
		}
	}
	return provision.Pool{PoolRef: ref}
}

// Named returns a pool as the latest report has it, and whether that has read it. Without such a pool it
// returns only the name.
func (o *Observer) Named(pool string) (p provision.Pool, read bool) {
	for _, p := range o.Latest().Pools {
		if p.Name == pool {
			return p, o.Known() == nil && !unread(p)
		}
	}
	return provision.Pool{PoolRef: provision.PoolRef{Name: pool}}, false
}

// unread says that nothing of a pool could be read.
func unread(p provision.Pool) bool { return p.Total == 0 && p.Problem != "" }

// HasRead says whether the latest report has read the pool with that name. Before the first
// report it returns an error.
func (o *Observer) HasRead(pool string) (bool, error) {
	if err := o.Known(); err != nil {
		return false, err
	}
	return slices.ContainsFunc(o.Latest().Pools, func(p provision.Pool) bool {
		return p.Name == pool && !unread(p)
	}), nil
}

// MayHaveVolume says whether a volume may be on the node: the latest report shows it, and it was
// not deleted since. Before the first report, and while some pool does not answer, every volume
// may be there.
func (o *Observer) MayHaveVolume(id string) bool {
	return o.mayHave(id, func(p provision.Pool) bool {
		return slices.ContainsFunc(p.Volumes, func(v provision.Volume) bool { return v.ID == id })
	})
}

// MayHaveSnapshot is MayHaveVolume for a snapshot.
func (o *Observer) MayHaveSnapshot(id string) bool {
	return o.mayHave(id, func(p provision.Pool) bool {
		return slices.ContainsFunc(p.Snapshots, func(s provision.Snapshot) bool { return s.ID == id })
	})
}

func (o *Observer) mayHave(id string, shown func(provision.Pool) bool) bool {
	if o.Known() != nil {
		return true
	}
	latest := o.Latest()
	return !o.Gone(id) && (latest.Silent != nil || slices.ContainsFunc(latest.Pools, shown))
}
