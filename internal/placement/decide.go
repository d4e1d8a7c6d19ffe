package placement

import (
	"cmp"
	"slices"

	"berth.dev/berth/api/v1alpha1"
)

// Reason says in one word how a decision came about.
type Reason string

// The reasons of a Decision.
const (
	// Placed: Node and Pool are set.
	Placed Reason = "Placed"
	// NoSpace: nodes serve the class, none of them has room.
	NoSpace Reason = "NoSpace"
	// NotServed: no node that is allowed serves the class.
	NotServed Reason = "NotServed"
	// Unaligned: it would fit, but no pool can carve a size between what is
	// asked and the limit.
	Unaligned Reason = "Unaligned"
)

// Request asks for a place.
type Request struct {
	PoolClass string
	// Capacity in bytes, at least; Limit at most, or 0.
	Capacity, Limit int64
	// Spare bytes of a pool that the class keeps free.
	Spare int64
	// Allowed nodes; empty means all.
	Allowed []string
	// Preferred nodes, best first.
	Preferred []string
	// Refused nodes have said no to this volume, with their message.
	Refused map[string]string
}

// Node is what is known of one node.
type Node struct {
	Name string
	// Away is empty, or says why the node cannot be asked now.
	Away  string
	Pools []v1alpha1.Pool
}

// Decision is a place, or why there is none.
type Decision struct {
	Node, Pool string
	Reason     Reason
	// Message is for people; empty when Placed.
	Message string
}

// candidate is a pool that fits.
type candidate struct {
	node, pool string
	free       int64
	preference int
}

// Decide picks the place for a volume.
func Decide(r Request, nodes []Node, usage Usage) Decision {
	var (
		fitting []candidate
		no      verdicts
	)
	for i := range nodes {
		node := &nodes[i]
		if len(r.Allowed) > 0 && !slices.Contains(r.Allowed, node.Name) {
			continue
		}
		best, verdict := r.bestPool(node, usage)
		if verdict.reason == Placed {
			fitting = append(fitting, best)
			continue
		}
		no = append(no, verdict)
	}
	if len(fitting) == 0 {
		return no.decision(r, nodes)
	}
	best := slices.MinFunc(fitting, better)
	return Decision{Node: best.node, Pool: best.pool, Reason: Placed}
}

// better orders candidates: preference, then free space, then name, so that the
// same facts always give the same answer.
func better(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(a.preference, b.preference),
		cmp.Compare(b.free, a.free),
		cmp.Compare(a.node, b.node),
		cmp.Compare(a.pool, b.pool),
	)
}

// bestPool is the pool of a node that has most room, or the verdict that keeps
// the node out.
func (r Request) bestPool(node *Node, usage Usage) (candidate, verdict) {
	if message, refused := r.Refused[node.Name]; refused {
		return candidate{}, verdict{NoSpace, node.Name, message}
	}
	if node.Away != "" {
		return candidate{}, verdict{NoSpace, node.Name, node.Away}
	}
	var best *candidate
	worst := verdict{reason: NotServed, node: node.Name}
	for i := range node.Pools {
		pool := &node.Pools[i]
		if !slices.Contains(pool.Classes, r.PoolClass) {
			continue
		}
		free := usage.Free(node.Name, pool, r.Spare)
		if verdict := r.fits(node.Name, pool, free); verdict.reason != Placed {
			worst = verdict
			continue
		}
		if best == nil || free > best.free {
			best = &candidate{node.Name, pool.Name, free, r.preference(node.Name)}
		}
	}
	if best == nil {
		return candidate{}, worst
	}
	return *best, verdict{reason: Placed}
}

// preference is the node's position in the caller's list; those that are not on
// it come last.
func (r Request) preference(node string) int {
	if i := slices.Index(r.Preferred, node); i >= 0 {
		return i
	}
	return len(r.Preferred)
}
