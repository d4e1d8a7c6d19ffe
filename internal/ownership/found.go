package ownership

import (
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
)

// Begin returns the first record of a volume of copies: no node has it, and node is to make its first
// snapshot, which is empty. The record is the volume's parameters when it is given.
func Begin(parameters Volume, node string, nodes []string, id string) *Volume {
	v, first := parameters, lineage.Epoch{Number: 1, ID: id}
	v.Epoch, v.Lineage, v.Clean = first, lineage.Lineage{{Epoch: first}}, true
	v.Primary, v.RecoveryPoint = Primary{Node: node}, lineage.Point{Epoch: first, Seq: 1}
	return v.with(func(n *Volume) {
		for _, name := range nodes {
			n.entry(name).State = Reserved
		}
	})
}

// found makes the first snapshot of a volume, of an empty copy. Only the node that the first record names does,
// and only if no node has taken the volume or holds anything of it: a copy that was lost is never made anew
// as an empty one. All others fetch it.
func found(f *NodeFacts) (Action, bool) {
	v, c := f.Record, &f.Copy
	e, _ := v.Replica(f.Me)
	if !f.traits().Data || !f.traits().Owned || v.Deleting || f.Mounted || v.Primary != (Primary{Node: f.Me}) || len(v.Lineage) != 1 ||
		e.State != Reserved && e.State != Syncing || c.Size == 0 || len(c.Points) > 0 || !c.Opened.IsZero() {
		return next()
	}
	taken := func(p lineage.Point) bool { return !p.IsZero() }
	if slices.ContainsFunc(v.Replicas, func(r Replica) bool { return taken(r.Point) }) ||
		slices.ContainsFunc(f.Peers, func(p Peer) bool { return taken(p.Copy.Tip()) || !p.Copy.Opened.IsZero() }) {
		return next()
	}
	p := Promise{Epoch: v.Epoch, Lineage: v.Lineage}
	switch {
	case !c.Exists:
		return Action{Verb: Persist, Promise: p, Why: Why{Reason: PromisingEpoch, Epoch: v.Epoch}}, true
	case !c.GaveUp(v.Epoch): // no pod ever writes into the first epoch
		return Action{Verb: Close, Promise: p, Why: Why{Reason: ClosingEpoch, Epoch: v.Epoch}}, true
	}
	return Action{Verb: Snapshot, To: v.RecoveryPoint, Why: Why{Reason: FirstSnapshot, Point: v.RecoveryPoint}}, true
}

const (
	// interval is how often a snapshot is taken if nothing is said about the loss of data, and the longest.
	interval    = time.Minute
	minInterval = 10 * time.Second
)

// Interval is how often the primary takes a snapshot: three come within the loss that is allowed without a
// person's word, because one of them may be on its way and one may fail.
func (p Failover) Interval() time.Duration {
	if p.MaxDataLoss <= 0 {
		return interval
	}
	return min(interval, max(minInterval, p.MaxDataLoss/3))
}
