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
	if !f.traits().Data || !f.traits().Owned || v.Deleting || f.Mounted || v.Primary != (Primary{Node: f.Me}) || len(v.Lineage) != 1 ||
		c.Size == 0 || len(c.Points) > 0 || !c.Opened.IsZero() || wasFilled(f) {
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

// wasFilled tells whether a copy here was counted once, or another node has, or had, data of the volume.
func wasFilled(f *NodeFacts) bool {
	if e, _ := f.Record.Replica(f.Me); e.State != Reserved && e.State != Syncing {
		return true
	}
	return slices.ContainsFunc(f.Record.Replicas, func(r Replica) bool { return !r.Point.IsZero() }) ||
		slices.ContainsFunc(f.Peers, func(p Peer) bool { return !p.Copy.Tip().IsZero() || !p.Copy.Opened.IsZero() })
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
