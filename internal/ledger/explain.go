package ledger

import (
	"fmt"
	"slices"
)

// Fact is one charge, for people and for comparison with the contents of the pool.
type Fact struct {
	Owner Owner
	Class string
	// Bytes that were asked for, and how much they take of the pool.
	Bytes, Charge int64
	// Carving is whether it may not be there yet.
	Carving bool
	// Listed is whether only the node's inventory knows of it.
	Listed bool
}

// PoolState is a pool with all that is charged to it.
type PoolState struct {
	Pool     Pool
	Reported bool
	// Used is Foreign and all charges.
	Used  int64
	Facts []Fact // by owner
}

// Pools lists the charges on a node, for `kubectl berth` and for the doctor.
func (l *Ledger) Pools(node string) []PoolState {
	n := l.nodes[node]
	if n == nil {
		return nil
	}
	states := make([]PoolState, 0, len(n.books))
	for _, b := range n.books {
		states = append(states, PoolState{Pool: b.Pool, Reported: b.reported, Used: b.used, Facts: l.facts(b)})
	}
	return states
}

func (l *Ledger) facts(b *book) []Fact {
	facts := make([]Fact, 0, len(b.volumes)+len(b.holds)+len(b.Inventory))
	for _, f := range slices.Concat(b.volumes, b.holds) {
		facts = append(facts, Fact{*f.owner, l.classNames[f.class], f.bytes, f.charge, f.carving, false})
	}
	for _, item := range b.Inventory {
		if b.fact(&item.Owner) == nil {
			facts = append(facts, Fact{Owner: item.Owner, Bytes: item.Taken, Charge: item.Taken, Listed: true})
		}
	}
	slices.SortFunc(facts, func(a, b Fact) int { return a.Owner.Compare(b.Owner) })
	return facts
}

// Room is how much a node can offer a class, each figure in the terms of the pools
// and in whole units.
type Room struct {
	// Largest charge that one pool can still take, and the sum over all pools.
	Largest, Sum int64
}

// Room of a class on a node. A controller publishes it as capacity where it has to.
func (l *Ledger) Room(node, class string) Room {
	id, known := l.classIDs[class]
	n := l.nodes[node]
	if !known || n == nil || !n.ready || !l.synced {
		return Room{}
	}
	var r Room
	for _, b := range n.books {
		if b.closed(id) == Fits {
			room := max(b.room(id), 0)
			room -= room % b.Unit // no volume can have less than a whole unit
			r.Largest, r.Sum = max(r.Largest, room), addUp(r.Sum, room)
		}
	}
	return r
}

// Explanation says why a request fits on a node or does not, with the numbers.
type Explanation struct {
	Node    string
	Verdict Verdict
	Choices []Choice
	Demands []DemandExplanation
	// Standbys is set if the volumes fit on the node, and their standbys nowhere.
	Standbys *StandbyExplanation
}

// DemandExplanation is the answer of every pool of the node to one demand alone.
type DemandExplanation struct {
	Demand Demand
	Pools  []PoolExplanation
}

// PoolExplanation is one pool's answer.
type PoolExplanation struct {
	Pool, Kind string
	// Total, Foreign and Used of the pool; Used includes Foreign.
	Total, Foreign, Used int64
	// Limit is the most that may be used for the class, Promised the most that
	// volumes which are yet to be carved allow. Free is the room left below both,
	// and Need how much the demand takes.
	Limit, Promised, Free, Need int64
	Reason                      Reason
}

// Explain answers like Fit, for people.
func (n *Node) Explain(r *Request) Explanation {
	var x Explanation
	x.Choices, x.Verdict = n.Place(r, nil)
	if n == nil {
		return x
	}
	x.Node = n.name
	cleared := r.cleared(n)
	for i := range r.items {
		it := &r.items[i]
		d := DemandExplanation{Demand: it.Demand}
		for _, b := range cleared.books {
			d.Pools = append(d.Pools, it.explain(n, b))
		}
		x.Demands = append(x.Demands, d)
	}
	return x
}

func (it *item) explain(n *Node, b *book) PoolExplanation {
	x := PoolExplanation{
		Pool: b.Name, Total: b.Total, Foreign: b.Foreign, Used: b.used,
		Limit: b.limit(it.id), Promised: b.promised, Reason: it.barred(n, b),
	}
	x.Free = min(x.Limit, x.Promised) - b.taken(it.yields)
	if b.Kind != nil {
		x.Kind, x.Need = b.Kind.Name(), b.Kind.Charge(&b.Pool, it.class, it.Bytes)
	}
	if has := it.on(n.name); has != nil && has.fixed {
		x.Need, x.Reason = it.owed(has, b), Fits
		if has.pool != b.Name {
			x.Reason = OtherPool
		} else if x.Need > max(x.Free, 0) {
			x.Reason = NoRoom
		}
	} else if x.Reason == Fits && x.Need > x.Free {
		x.Reason = NoRoom
	}
	return x
}

// String is one line for people.
func (p PoolExplanation) String() string {
	if p.Reason != Fits && p.Reason != NoRoom {
		return fmt.Sprintf("pool %s: %s", p.Pool, p.Reason.Message())
	}
	return fmt.Sprintf("pool %s: needs %d, free %d (limit %d, used %d of which foreign %d): %s",
		p.Pool, p.Need, p.Free, min(p.Limit, p.Promised), p.Used, p.Foreign, p.Reason.Message())
}
