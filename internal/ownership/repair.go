package ownership

import (
	"slices"
	"time"
)

// repairRecord mends a record that is older than a node's knowledge: the API server
// came back from a backup. A promise proves that the record once was further on if
// it comes from a later epoch of the same history: the promise knows the record's
// epoch, and the next epoch began where the record says an epoch begins, or earlier
// because of a loss that the promise knows and the backup does not, whatever the owner
// of the lost writes has released since. A promise that only has a higher number was
// left behind by a takeover that could not hear of it. That is divergence, and the
// record stays as it is.
//
// The repaired record says Active unless the owner's own copy says otherwise: the next
// owner must wait for a release or a fence, as if the backup had never happened. A
// backup does not know either whether the volume was unmounted cleanly since.
//
// A node without an entry in the record waits for a controller to mend it. The API does not let it
// write: else any node could claim to know better about any volume.
//
// A shared disk may be held for a later epoch that no answering node has promised. Its
// key then tells only the number, so nothing is decided until a node that knows the
// epoch answers.
func repairRecord(f *NodeFacts) (Action, bool) {
	if f.Record == nil || !f.traits().Owned {
		return next()
	}
	if f.Record.Sharing.ManyWriters {
		return repairWriter(f)
	}
	best, who := f.Copy.Promise, &f.Copy
	if !ahead(f.Record, &best) {
		best = Promise{}
	}
	for i := range f.Peers {
		if p := &f.Peers[i].Copy.Promise; p.Epoch.Number > best.Epoch.Number && ahead(f.Record, p) {
			best, who = *p, nil
		}
	}
	if f.needsTheDisk() && f.Disk.Holder.Number() > max(best.Epoch.Number, f.Record.Epoch.Number) && !f.Disk.Holder.IsLeftByWipe() {
		return wait(Why{Reason: HolderUnknown, Count: int(f.Disk.Holder.Number())})
	}
	if best.Epoch.IsZero() {
		return next()
	}
	if _, counted := f.Record.Replica(f.Me); f.Me != "" && !counted {
		return wait(Why{Reason: RecordBehind, Epoch: best.Epoch, Node: best.Primary}) // a controller mends it
	}
	if best.Primary != f.Me {
		who = ownerCopy(f.Peers, best.Primary)
	}
	return mend(f, best, who)
}

// repairWriter mends what the record says of one writer of several, by what its node knows. No other node can know
// better. An epoch that the node has not opened, or gave up, needs no mending.
func repairWriter(f *NodeFacts) (Action, bool) {
	for _, k := range append(slices.Clone(f.Disk.Keys), f.Disk.Holder) {
		if f.needsTheDisk() && k.Number() > maxNumber {
			return wait(Why{Reason: HolderUnknown, Count: int(k.Number())})
		}
	}
	who := &f.Copy
	if f.Me == "" {
		who = ownerCopy(f.Peers, f.Record.Primary.Node)
	}
	node := f.Record.Primary.Node
	if who == nil || who.Promise.Primary != node || who.Opened != who.Promise.Epoch || !f.Record.lacks(node, who) {
		return next()
	}
	if _, counted := f.Record.Replica(f.Me); f.Me != "" && !counted {
		return wait(Why{Reason: RecordBehind, Epoch: who.Promise.Epoch, Node: f.Me}) // a controller mends it
	}
	return mend(f, who.Promise, who)
}

// needsTheDisk tells whether the volume waits until the disk's holder is known. A volume that is being deleted, and that no
// pod has here, only lets go of the disk.
func (f *NodeFacts) needsTheDisk() bool { return !f.Record.Deleting || f.Mounted }

// ahead tells whether the promise is a later state of this very record.
func ahead(v *Volume, p *Promise) bool {
	if p.Epoch.Number <= v.Epoch.Number {
		return false
	}
	if !v.Kind.Traits().Data {
		return true // the disk itself orders the epochs
	}
	after, ok := p.Lineage.After(v.Epoch)
	return ok && (v.Primary.Phase.Open() || after.From == v.RecoveryPoint ||
		slices.ContainsFunc(p.Losses, func(l Loss) bool { return l.Epoch == v.Epoch && l.Kept == after.From }))
}

func ownerCopy(peers []Peer, node string) *Copy {
	for i := range peers {
		if peers[i].Node == node {
			return &peers[i].Copy
		}
	}
	return nil
}

// mend writes the record that the promise describes. owner is the copy of the
// promise's primary, as that node answers, nil if it could not be asked.
func mend(f *NodeFacts, p Promise, owner *Copy) (Action, bool) {
	v, phase := f.Record, Active
	if owner != nil && owner.Promise.Epoch == p.Epoch && owner.Opened != p.Epoch {
		phase = Preparing
	}
	return record(v.with(func(n *Volume) {
		if p.Epoch.Number > v.newest() {
			n.Lineage = p.Lineage
		}
		n.Epoch = p.Epoch
		n.Primary = Primary{Node: p.Primary, Boot: p.Boot, Phase: phase}
		n.FenceRequest, n.Clean, n.ExpireAt = FenceRequest{}, false, time.Time{}
		n.issue(Key{Node: p.Primary, Epoch: p.Epoch})
		if b, ok := p.Lineage.Branch(p.Epoch); ok && f.traits().Data {
			n.RecoveryPoint, n.Losses = b.From, p.Losses
		}
		if _, ok := n.Replica(p.Primary); !ok {
			n.entry(p.Primary).State = Syncing
		}
	}), Why{Reason: RecordBehind, Epoch: p.Epoch, Node: p.Primary})
}
