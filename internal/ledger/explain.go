package ledger

import "fmt"

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
