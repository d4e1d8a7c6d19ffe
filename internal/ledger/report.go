package ledger

import (
	"errors"
	"fmt"
)

// Report is a node's report of its pools. It is atomic, so that total and foreign
// bytes always belong together.
type Report struct {
	// Node that reports.
	Node string
	// Generation is the highest revision among the Volumes that the agent had taken
	// into account when it sorted the contents of its pools into Berth's and
	// foreign. Zero means that it does not say.
	Generation int64
	// Ready is false when the agent cannot list its pools or has lost its
	// heartbeat: existing charges stand, nothing new is placed.
	Ready bool
	// Features that the agent says it has.
	Features []string
	// Domain is the failure domain that the node is in, as its zone; empty if it shares none.
	Domain string
	Pools  []Pool
}

// Health of a pool.
type Health uint8

// The states of a pool.
const (
	// Healthy pools take new volumes.
	Healthy Health = iota
	// Degraded pools serve the volumes they have and take nothing new.
	Degraded
	// Missing pools hold volumes but are not there.
	Missing
)

// Pool is one pool in a Report. Its Kind decides whether a figure counts bytes or
// slots.
type Pool struct {
	Name string
	Kind Kind
	// Total size, and the part of it that others than Berth use.
	Total, Foreign int64
	// Unit that sizes are rounded up to: an extent, a chunk. At least 1.
	Unit int64
	// Media of the pool ("ssd"); empty where it is not known.
	Media string
	// Filled is how many bytes of a thin pool hold data; FilledMetadata is the
	// fill of its metadata in percent.
	Filled         int64
	FilledMetadata int
	Health         Health
	// Classes that the pool serves on this node.
	Classes []string
	// Inventory lists the items of Berth's in the pool that are no replica of a
	// Volume that the agent knows: inline volumes, and volumes whose Volume is
	// gone. They are part of neither Foreign nor any Volume.
	Inventory []Item
}

// Item is a volume that a report names.
type Item struct {
	Owner Owner
	// Taken is how much of the pool it takes.
	Taken int64
	// Orphan is whether no object accounts for it. An item that is no orphan has an
	// object that the agent does not know yet, or is about to go.
	Orphan bool
}

// maxPools bounds the pools of one node, so that a search over them needs no
// memory of its own.
const maxPools = 256

// check says what is wrong with a pool of a report.
func (p *Pool) check() error {
	switch {
	case p.Kind == nil:
		return fmt.Errorf("pool %q: kind is missing", p.Name)
	case p.Total < 0 || p.Foreign < 0 || p.Filled < 0 || p.FilledMetadata < 0:
		return fmt.Errorf("pool %q: a figure is negative", p.Name)
	case p.Unit < 1:
		return fmt.Errorf("pool %q: unit %d is below 1", p.Name, p.Unit)
	}
	for _, item := range p.Inventory {
		if item.Taken < 0 {
			return fmt.Errorf("pool %q: %v takes %d", p.Name, item.Owner, item.Taken)
		}
	}
	return nil
}

// valid returns the pools of a report that can be believed, and an error that names
// the others. A pool with invalid figures counts as not reported: its charges stay
// and nothing new is placed there.
func (r *Report) valid() ([]Pool, error) {
	var problems []error
	seen := make(map[string]bool, len(r.Pools))
	pools := make([]Pool, 0, len(r.Pools))
	for i := range r.Pools {
		p := &r.Pools[i]
		err := p.check()
		switch {
		case p.Name == "":
			err = errors.New("a pool has no name")
		case seen[p.Name]:
			err = fmt.Errorf("pool %q is reported twice", p.Name)
		case len(pools) == maxPools:
			err = fmt.Errorf("pool %q: a node can have %d pools", p.Name, maxPools)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		seen[p.Name] = true
		pools = append(pools, *p)
	}
	return pools, errors.Join(problems...)
}
