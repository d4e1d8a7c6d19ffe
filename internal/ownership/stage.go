package ownership

import (
	"time"

	"berth.dev/berth/internal/lineage"
)

// StageRules answer "what next?" while a pod wants to write here. Asked again
// after every action, they lead from any state, after any crash, to Done. The
// one place where ownership is taken is the rule "take over".
var StageRules = Chain[NodeFacts]{
	{"record read", recordRead},           // nothing begins without the record
	{"volume exists", stageExists},        // staging never creates a volume
	{"repair record", repairRecord},       // a record from an old backup is mended before it is believed
	{"step down", stepDown},               // a mount of a superseded epoch goes first
	{"already mounted", stageMounted},     // idempotent
	{"one copy", stageOneCopy},            // no other node to take it from
	{"node in service", stageInService},   // or its taint, or lapsed lease, would be a proof about a writer
	{"replica here", stageReplicaHere},    // a missing device is an error
	{"restart", stageRestart},             // an epoch is never continued after a restart
	{"primary elsewhere", stageElsewhere}, // one writer
	{"replica ready", stageReady},         // catch up before taking, not after
	{"recovery point near", stageReach},   // never begin from anything else
	{"take over", takeOver},               // the compare-and-swap
	{"promise", adoptPromise},             // durable before the first write
	{"put branch aside", putBranchAside},  // data beyond the recovery point
	{"grow", grow},                        // before a larger peer's data
	{"catch up", stageCatchUp},            // exactly to the recovery point
	{"reservation", stageReserve},         // shared disks: shut all other nodes out
	{"open copy", openCopy},               // durable before Active: tells a lost copy from an unused one
	{"activate", activate},                // recorded before the first write
	{"mount", stageMount},                 //
}

func stageExists(f *NodeFacts) (Action, bool) {
	if f.Record == nil {
		return refuse(Why{Reason: VolumeUnknown})
	}
	if f.Record.Deleting && !f.Mounted {
		return refuse(Why{Reason: VolumeDeleting})
	}
	return next()
}

func stageMounted(f *NodeFacts) (Action, bool) {
	if f.Mounted {
		return Action{Verb: Done, Why: Why{Reason: Mounted, Epoch: f.Copy.Opened}}, true
	}
	return next()
}

func stageOneCopy(f *NodeFacts) (Action, bool) {
	if f.traits().Owned {
		return next()
	}
	if !f.Copy.Exists || f.Copy.Condemned || f.Copy.Quarantined {
		return refuse(Why{Reason: ReplicaMissing, Node: f.Me})
	}
	return Action{Verb: Mount, Why: Why{Reason: HoldsTheCopy}}, true
}

func stageInService(f *NodeFacts) (Action, bool) {
	if f.OutOfService {
		return refuse(Why{Reason: NodeOutOfService, Node: f.Me})
	}
	if f.SinceRenewal >= SelfFenceAfter {
		return wait(Why{Reason: LeaseLapsed, Node: f.Me})
	}
	return next()
}

func stageReplicaHere(f *NodeFacts) (Action, bool) {
	r, ok := f.Record.Replica(f.Me)
	switch {
	case f.traits().Attaches && (!ok || !r.State.counts() || f.Disk.Link != Attached):
		return wait(Why{Reason: NotAttached, Node: f.Me}) // the controller makes one for the pod
	case !ok || !r.State.counts() || f.Copy.Condemned:
		return refuse(Why{Reason: ReplicaMissing, Node: f.Me})
	}
	return next()
}

// stageRestart closes an epoch of ours that this boot, or this copy, cannot
// vouch for. Continuing it would make a proof about the earlier boot look like a
// proof about this one. An epoch from before the lease lapsed may have been fenced
// too, though it was not opened yet; a backup may have forgotten that.
func stageRestart(f *NodeFacts) (Action, bool) {
	v, c := f.Record, &f.Copy
	if !v.ownedBy(f.Me) {
		return next()
	}
	unused := v.Primary.Phase == Preparing && !forgotten(f)
	e, _ := v.Replica(f.Me)
	if !f.Lapsed && e.Unstaged != v.Epoch && v.Primary.Boot == f.Boot && !c.GaveUp(v.Epoch) && (unused || c.Opened == v.Epoch) {
		return next()
	}
	return Action{Verb: GiveUp, Why: Why{Reason: Restarted, Epoch: v.Epoch}}, true
}

func stageElsewhere(f *NodeFacts) (Action, bool) {
	if f.Record.Primary.Phase.Open() && f.Record.Primary.Node != f.Me {
		return wait(Why{Reason: PrimaryElsewhere, Node: f.Record.Primary.Node, Epoch: f.Record.Epoch})
	}
	return next()
}

func stageReady(f *NodeFacts) (Action, bool) {
	r, _ := f.Record.Replica(f.Me)
	if !f.Record.Primary.Phase.Open() && r.State != Ready {
		return wait(Why{Reason: ReplicaNotReady, Node: f.Me})
	}
	return next()
}

func stageReach(f *NodeFacts) (Action, bool) {
	if !f.traits().Data || writtenHere(f) || f.Copy.Has(f.Record.RecoveryPoint) {
		return next()
	}
	if _, ok := holderOf(f, f.Record.RecoveryPoint); ok {
		return next()
	}
	if f.Record.ownedBy(f.Me) {
		// The epoch is unwritten. Giving it up lets the controller choose again.
		return Action{Verb: GiveUp, Why: Why{Reason: RecoveryPointUnreachable, Point: f.Record.RecoveryPoint}}, true
	}
	return wait(Why{Reason: RecoveryPointUnreachable, Point: f.Record.RecoveryPoint})
}

// takeOver opens the next epoch. It records the branch of the epoch in the same
// write: only the branch identifies a tip that a cut-off primary never reported.
func takeOver(f *NodeFacts) (Action, bool) {
	v := f.Record
	if v.Primary.Phase.Open() {
		return next()
	}
	if k := stranger(f); k != 0 {
		return wait(Why{Reason: HolderUnknown, Count: int(k.Number())})
	}
	epoch := nextEpoch(f)
	why := Why{Reason: TakingOver, Epoch: epoch, Point: v.RecoveryPoint}
	return record(v.with(func(n *Volume) {
		n.Epoch = epoch
		n.Primary = Primary{Node: f.Me, Boot: f.Boot, Phase: Preparing}
		n.Lineage = v.Lineage.Extend(lineage.Branch{Epoch: epoch, From: v.RecoveryPoint})
		n.FenceRequest = FenceRequest{}
		n.Clean = v.Clean && !v.Sharing.ManyWriters // no release can vouch for the others
		n.ExpireAt = time.Time{}
		n.issue(Key{Node: f.Me, Epoch: epoch})
	}), why)
}

// stranger is the key of a writer that may be another volume's: the record is from a backup, and the disk was wiped and
// handed out since, or another cluster names the same disk. Its epoch is newer than all of which the record, the nodes
// that answer, and a wipe of the disk know. A key of this volume's that is newer than a wipe shows that the disk is
// still this volume's: the next one's first writer removes those. Zero is no such key. Where one node writes,
// repairRecord waits for the holder.
func stranger(f *NodeFacts) (k RawKey) {
	if !f.Record.Sharing.ManyWriters {
		return 0
	}
	wiped, known := uint64(0), knownEpochs(f)
	for _, key := range f.Disk.Keys {
		if key.IsLeftByWipe() {
			wiped = max(wiped, key.Number())
		}
	}
	for _, key := range f.Disk.Keys {
		if f.Issued(key) && key.Number() > wiped {
			return 0
		}
		if key.Number() > max(known, wiped) {
			k = key
		}
	}
	return k
}

// knownEpochs is the highest number of an epoch of the volume that is known here and at the peers.
func knownEpochs(f *NodeFacts) uint64 {
	c := &f.Copy
	highest := max(f.Record.newest(), c.Promise.Epoch.Number, c.Opened.Number, c.Closed.Number)
	for i := range f.Peers {
		highest = max(highest, f.Peers[i].Copy.Promise.Epoch.Number)
	}
	return highest
}

// nextEpoch is above every number known here, at the peers and at the disk. It is
// also above all of this node's own epochs: a restored backup may lower a promise,
// but an epoch that this node gave up stays given up.
func nextEpoch(f *NodeFacts) lineage.Epoch {
	highest := max(knownEpochs(f), f.Disk.Holder.Number())
	for _, k := range f.Disk.Keys {
		highest = max(highest, k.Number())
	}
	return lineage.Next(f.FreshID, highest)
}

// adoptPromise makes the record's epoch durable here. It comes from an uncached
// read, so it also replaces the promise of an epoch that a restored backup has
// forgotten and the volume has left behind. Of several writers each promises its own epochs alone, and they only rise: so
// a node still tells in which boot it opened an epoch that a backup has forgotten.
func adoptPromise(f *NodeFacts) (Action, bool) {
	v := f.Record
	if v.Sharing.ManyWriters && v.Epoch.Number < f.Copy.Promise.Epoch.Number {
		return next()
	}
	if !f.traits().Owned || f.Copy.Promise.Epoch == v.Epoch || v.Epoch.IsZero() || f.Mounted || !f.Copy.Exists && f.traits().Data {
		return next()
	}
	p := Promise{Epoch: v.Epoch, Primary: v.Primary.Node, Boot: v.Primary.Boot, Lineage: v.Lineage.Until(v.Epoch), Losses: v.Losses}
	return Action{Verb: Persist, Promise: p, Why: Why{Reason: PromisingEpoch, Epoch: v.Epoch}}, true
}

func stageCatchUp(f *NodeFacts) (Action, bool) {
	want := f.Record.RecoveryPoint
	if writtenHere(f) || f.Copy.Tip() == want { // a disk has no points, and its record none to reach
		return next()
	}
	from, ok := holderOf(f, want)
	if !ok {
		return wait(Why{Reason: RecoveryPointUnreachable, Point: want})
	}
	return pull(f, from, want)
}

// stageReserve takes the reservation from a key older than our epoch. The device
// compares the old key, so a takeover decided before a pause fails after it.
func stageReserve(f *NodeFacts) (Action, bool) {
	if f.Record.Sharing.ManyWriters {
		return join(f)
	}
	mine := Key{Node: f.Me, Epoch: f.Record.Epoch}
	if !f.traits().Reserves || f.Disk.holds(mine) {
		return next()
	}
	held, _ := readKey(f, f.Disk.Holder)
	switch number := f.Disk.Holder.Number(); {
	case f.Disk.Holder == mine.Raw(): // an earlier session of this node
	case number == mine.Epoch.Number: // a fence, perhaps called off too late: only a new epoch helps
		return Action{Verb: GiveUp, Why: Why{Reason: ShutOut, Node: held.Node, Epoch: held.Epoch}}, true
	case number > mine.Epoch.Number:
		return wait(Why{Reason: ShutOut, Node: held.Node, Epoch: held.Epoch})
	}
	return seize(f, mine, Why{Reason: TakingReservation, Node: held.Node, Epoch: mine.Epoch})
}

func openCopy(f *NodeFacts) (Action, bool) {
	if f.Copy.Opened == f.Record.Epoch {
		return next()
	}
	return Action{Verb: Open, Promise: f.Copy.Promise, Why: Why{Reason: OpeningCopy, Epoch: f.Record.Epoch}}, true
}

func activate(f *NodeFacts) (Action, bool) {
	if f.Record.Primary.Phase == Active || !f.Record.ownedBy(f.Me) {
		return next()
	}
	return record(f.Record.with(func(n *Volume) {
		n.Primary.Phase = Active
		e := n.entry(f.Me)
		state := Ready
		if !state.MayFollow(e.State) { // a backup tells of another time; the next report corrects it
			state = Syncing
		}
		e.State, e.Point = state, f.Copy.Tip()
	}), Why{Reason: Activating, Epoch: f.Record.Epoch})
}

func stageMount(f *NodeFacts) (Action, bool) {
	return Action{Verb: Mount, Check: !f.Record.Clean, Why: Why{Reason: OwnsEpoch, Epoch: f.Record.Epoch}}, true
}
