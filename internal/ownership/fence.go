package ownership

import (
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
)

// fence ends the epoch of a primary that is provably unable to write, and fixes
// where the next one begins. Suspicion alone only asks a standby to shut the
// writer out where the device can do that.
func fence(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Primary.Phase.Open() || v.Deleting {
		return next()
	}
	proof, proven := provenBy(f)
	switch {
	case !proven:
		return requestFence(f)
	case proof.Kind.deliberate():
	case f.braked():
		return wait(Why{Reason: BrakeHeld, Node: v.Primary.Node})
	case v.needsWord():
		return wait(Why{Reason: WordNeeded, Node: v.Primary.Node})
	}
	return fenceAt(f)
}

// needsWord tells whether an administrator has yet to ask for the end of the epoch, because the volume
// does not fail over by itself. A request in the record is that word: the rules make none for such a
// volume. With copies, the word is about a snapshot (lossAllowed).
func (v *Volume) needsWord() bool {
	return !v.Kind.Traits().Data && !v.Failover.Automatic && v.FenceRequest.Epoch != v.Epoch
}

// provenBy returns a proof that the writer has stopped: a deliberate one if there is any, because it needs no
// more than itself.
func provenBy(f *ControllerFacts) (best Proof, proven bool) {
	for _, p := range append(recordedProofs(f.Record), f.Proofs...) {
		if p.covers(f.Record) && (!proven || p.Kind.deliberate()) {
			best, proven = p, true
		}
	}
	return best, proven
}

// requestFence asks a standby to shut a writer out that looks dead, or that gave its epoch up and cannot release it. The
// second is there, and lets go by itself when it can: nothing waits for it that no standby can do.
func requestFence(f *ControllerFacts) (Action, bool) {
	v, suspected := f.Record, Suspected(f.Witnesses)
	if !suspected && !f.renounced() {
		return next()
	}
	ifDead := func(waits Action, _ bool) (Action, bool) { return waits, suspected }
	switch {
	case f.braked():
		return ifDead(wait(Why{Reason: BrakeHeld, Node: v.Primary.Node}))
	case v.needsWord():
		return ifDead(wait(Why{Reason: WordNeeded, Node: v.Primary.Node}))
	case !v.Kind.Traits().Reserves || !v.Sharing.Persistent:
		return ifDead(wait(Why{Reason: NoProof, Node: v.Primary.Node}))
	}
	if a, ok := askStandby(f); ok {
		return a, true
	}
	return ifDead(wait(Why{Reason: NoProof, Node: v.Primary.Node}))
}

// askStandby asks a standby that is ready, or makes the one that is asked next. A standby whose agent answers the
// controller goes before one whose agent does not, which would not read the request. If a request moves, both standbys may
// act on it: the disk is the judge.
func askStandby(f *ControllerFacts) (Action, bool) {
	v, r := f.Record, f.Record.FenceRequest
	able := slices.DeleteFunc(slices.Clone(v.Replicas), func(e Replica) bool {
		return e.Node == v.Primary.Node || e.State != Ready || f.node(e.Node).Lost
	})
	answers := func(e Replica) bool { return ownerCopy(f.Peers, e.Node) != nil }
	if slices.ContainsFunc(able, answers) {
		able = slices.DeleteFunc(able, func(e Replica) bool { return !answers(e) })
	}
	switch {
	case r.Epoch == v.Epoch && slices.ContainsFunc(able, func(e Replica) bool { return e.Node == r.Executor }):
		return wait(Why{Reason: FenceRequested, Node: r.Executor})
	case len(able) > 0:
		return record(v.RequestFence(able[0].Node), Why{Reason: FenceRequested, Node: able[0].Node})
	}
	if a, ok := publish(f); ok {
		return a, true
	}
	return rebuild(f)
}

// renounced tells whether the writer's node answers that it gave the epoch up, and has said that its attachment is of
// no use.
func (f *ControllerFacts) renounced() bool {
	v := f.Record
	e, _ := v.Replica(v.Primary.Node)
	c := ownerCopy(f.Peers, v.Primary.Node)
	return e.State != Ready && c != nil && c.Opened == v.Epoch && c.GaveUp(v.Epoch)
}

// RequestFence returns the record that asks a standby to shut the writer of the open epoch out. The rules ask
// when the writer is suspected, and a person may ask at any time: the disk is the judge either way.
func (v *Volume) RequestFence(executor string) *Volume {
	return v.with(func(n *Volume) {
		n.FenceRequest = FenceRequest{Executor: executor, Epoch: v.Epoch}
		n.issue(Key{Node: executor, Epoch: v.Epoch, Fence: true})
	})
}

// fenceAt writes the fence. With copies it also chooses the recovery point: the
// best that the other nodes hold now, by their own answers. The attachments of a disk without a writer begin to
// expire with the same write, and not with one more that the failover would wait for.
func fenceAt(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Kind.Traits().Data {
		return record(v.with(func(n *Volume) {
			n.Primary.Phase, n.Clean, n.FenceRequest = Fenced, false, FenceRequest{}
			if len(n.Writing()) == 0 {
				n.ExpireAt = f.expiry()
			}
		}), Why{Reason: WriterFenced, Node: v.Primary.Node, Epoch: v.Epoch})
	}
	best, age := recoveryPoint(v, f.Peers)
	known := knownPoint(v)
	if a, blocked := lossAllowed(f, best, age, known); blocked {
		return a, true
	}
	why := Why{Reason: WriterFenced, Node: v.Primary.Node, Epoch: v.Epoch, Point: best}
	return record(v.with(func(n *Volume) {
		n.Primary.Phase, n.Clean, n.RecoveryPoint = Fenced, false, best
		n.lose(Loss{Epoch: v.Epoch, Kept: best, Known: known})
	}), why)
}

// recoveryPoint is the newest valid point among the standbys that answered. The
// primary's own copy does not count, because it may still grow, unless the primary
// itself recorded that it has stopped.
func recoveryPoint(v *Volume, peers []Peer) (best lineage.Point, age time.Duration) {
	for i := range peers {
		p := &peers[i]
		e, ok := v.Replica(p.Node)
		if !ok || p.Copy.Condemned || v.ownedBy(p.Node) && e.Unstaged != v.Epoch {
			continue
		}
		if at := v.Newest(p.Copy.Points); at.Seq > best.Seq {
			best, age = at, p.Age
		}
	}
	return best, age
}

// knownPoint is the newest valid point that the record tells of.
func knownPoint(v *Volume) lineage.Point {
	best := v.RecoveryPoint
	for i := range v.Replicas {
		if p := v.Replicas[i].Point; p.Seq > best.Seq && v.Holds(p) {
			best = p
		}
	}
	return best
}

// lossAllowed holds a failover back until a better copy had time to answer, and
// until policy or a person agrees to the loss.
func lossAllowed(f *ControllerFacts, best lineage.Point, age time.Duration, known lineage.Point) (Action, bool) {
	v, better := f.Record, betterMayAnswer(f, best)
	switch {
	case best.IsZero():
		return wait(Why{Reason: NoCandidate})
	case v.Failover.Approved == best:
		return next()
	case known.Seq > best.Seq && better != "":
		return wait(Why{Reason: Settling, Node: better, Point: known})
	case !v.Failover.Automatic || age > v.Failover.MaxDataLoss:
		return wait(Why{Reason: PromotionBlocked, Point: best})
	}
	return next()
}

// betterMayAnswer is a node that has not answered and may have a better copy, empty if there is none. One answer that
// is lost, or an agent that begins anew, must not cost what its copy has. So a node that is there has longer than one
// that is lost.
func betterMayAnswer(f *ControllerFacts, best lineage.Point) (node string) {
	v := f.Record
	for i := range v.Replicas {
		e := &v.Replicas[i]
		if e.Point.Seq <= best.Seq || v.ownedBy(e.Node) || ownerCopy(f.Peers, e.Node) != nil {
			continue
		}
		if f.SuspectFor < Settle || !f.node(e.Node).Lost && f.SuspectFor < Silence {
			return e.Node
		}
	}
	return ""
}

// reposition lowers the recovery point of a volume without an owner, when the nodes
// that hold it are lost. The point is never raised: between the fence and now a
// cut-off writer may have gone on in its own copy and sent it on. So what lies behind
// the recovery point is no part of the volume (Volume.Holds).
func reposition(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Kind.Traits().Data || v.Primary.Phase.Open() || v.Deleting {
		return next()
	}
	if anyoneHolds(f) {
		return next()
	}
	if f.braked() {
		return wait(Why{Reason: BrakeHeld, Node: v.Primary.Node})
	}
	best, age := recoveryPoint(v, f.Peers)
	if best.IsZero() {
		return wait(Why{Reason: NoCandidate})
	}
	if v.Failover.Approved != best && (!v.Failover.Automatic || age > v.Failover.MaxDataLoss) {
		return wait(Why{Reason: PromotionBlocked, Point: best})
	}
	return record(v.with(func(n *Volume) {
		n.RecoveryPoint, n.Clean = best, false
		n.lose(Loss{Epoch: v.Epoch, Kept: best, Known: v.RecoveryPoint})
	}), Why{Reason: RecoveryPointLost, Point: best})
}

// anyoneHolds tells whether the recovery point is held by a node that answers,
// or by one that may still answer.
func anyoneHolds(f *ControllerFacts) bool {
	v := f.Record
	for i := range f.Peers {
		if f.Peers[i].Copy.Has(v.RecoveryPoint) {
			return true
		}
	}
	for i := range v.Replicas {
		e := &v.Replicas[i]
		if n := f.node(e.Node); e.Point.Seq >= v.RecoveryPoint.Seq && n.LostFor < Settle && ownerCopy(f.Peers, e.Node) == nil {
			return true
		}
	}
	return false
}
