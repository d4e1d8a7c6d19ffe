package ownership

import (
	"slices"
	"time"
)

// ControllerFacts are everything the controller's rules may look at. The shell
// reads the record first, uncached, and gathers the rest after it: a proof that
// is older than the record may be about an earlier epoch.
type ControllerFacts struct {
	Now    time.Time
	Record *Volume
	// Peers are the replicas' own answers.
	Peers []Peer
	// Proofs gathered after the record was read; those that the record carries
	// are added by the rules.
	Proofs []Proof
	// Witnesses tell whether they can reach the primary.
	Witnesses []Witness
	// Nodes are the storage nodes, and those that the record names besides.
	Nodes []Machine
	// SuspectFor is how long the primary has been suspected.
	SuspectFor time.Duration
	// Watching is how long this controller has been in contact with the API without a break.
	Watching time.Duration
	// Wanted are the nodes to which a pod that uses the volume is bound and where it has
	// not ended. For volumes with attachments only.
	Wanted []string
}

// Witness is an observer that could notice that a node is dead.
type Witness struct {
	Name  string
	Alive bool
}

// Machine is a storage node as a place for replicas.
type Machine struct {
	Name string
	// Unlisted: the record has a replica there, and the cluster has no such storage node any more. It is no place for
	// another one, and does not count for the brake: a deleted Node is no sign of a mass failure.
	Unlisted bool
	// Lost: a majority of the witnesses has not seen it, for LostFor.
	Lost    bool
	LostFor time.Duration
	// Fits: it is in service, in the class, not cordoned, and has room.
	Fits bool
	// Leaving: it shall have no pods of the volume any more, because it is cordoned, or will go. What is
	// attached to it works.
	Leaving bool
	// Slots is how many more disks can be attached to it, not counting slots for
	// which a primary waits.
	Slots int
	// GiveWay: of the attachments on the node, the ledger has chosen this volume's to give
	// its slot to a primary of another volume.
	GiveWay bool
	// MakesRoom: standbys of other volumes on the node give way to this volume, for which a pod waits there, as
	// soon as its disk has a free share.
	MakesRoom bool
}

// Away tells whether the node is lost for so long that nothing waits for it any more that another node can do.
func (m Machine) Away() bool { return m.Lost && m.LostFor >= Silence }

// Settle is how long a fence waits for a better copy to answer, and Silence for one whose
// node is there; that is also how long a lost node may come back before others do what it can do. RebuildDelay is
// how long a lost replica may come back before it is replaced. ExpireAfter is
// how long the attachments of an unused volume stay at least, and ClaimWithin how long the node of the next pod has
// to take the volume before a controller calls the deadline off itself. WatchFirst is how long a
// controller watches the leases before it trusts its own count of lost nodes.
const (
	Settle       = 5 * time.Second
	Silence      = time.Minute
	RebuildDelay = 10 * time.Minute
	ExpireAfter  = 5 * time.Minute
	ClaimWithin  = 5 * time.Second
	WatchFirst   = 10 * time.Second
)

// OverseeRules answer the controller's "what next?" for one volume.
var OverseeRules = Chain[ControllerFacts]{
	{"repair record", overseeRepair},    // believe the nodes before an old backup
	{"drop gone entries", dropGone},     // an entry leaves only from Gone
	{"forsake", forsake},                // an attachment that its node will never end
	{"delete", removeAll},               // the one removal that needs no other copies
	{"fence", fence},                    // only with proof, never while the brake holds
	{"recovery point lost", reposition}, // no node may write, and the point to go on from is lost
	{"publish", publish},                // an attachment for each node that wants the volume
	{"give way", giveWay},               // a standby in the way of another volume's primary
	{"expire", expire},                  // unused attachments
	{"rebuild", rebuild},                // too few
	{"surplus", surplus},                // too many: removal, first phase
	{"no room", noRoom},                 // what a pod waits for
}

// braked tells whether nothing may be promoted or rebuilt now. A controller that has begun to
// watch a moment ago has not missed a single lease yet, and would take a mass failure for the
// failure of one node.
func (f *ControllerFacts) braked() bool { return f.Watching < WatchFirst || BrakeHolds(f.Nodes) }

func (f *ControllerFacts) wanted(node string) bool { return slices.Contains(f.Wanted, node) }

func (f *ControllerFacts) node(name string) Machine {
	for i := range f.Nodes {
		if f.Nodes[i].Name == name {
			return f.Nodes[i]
		}
	}
	return Machine{Name: name}
}

// leaving tells whether an attachment shall be on another node. A copy stays: it costs a whole copy to replace it.
func (f *ControllerFacts) leaving(e *Replica) bool {
	return f.Record.Kind.Traits().Attaches && f.node(e.Node).Leaving
}

func overseeRepair(f *ControllerFacts) (Action, bool) {
	return repairRecord(&NodeFacts{Record: f.Record, Peers: f.Peers})
}

// dropGone keeps the entry of an owner: after a backup a node may have brought its epoch back that the older record
// did not count any more. It gives the epoch up, and then the entry goes.
func dropGone(f *ControllerFacts) (Action, bool) {
	for i := range f.Record.Replicas {
		if e := f.Record.Replicas[i]; e.State == Gone && !f.Record.ownedBy(e.Node) {
			return record(f.Record.with(func(n *Volume) { n.drop(e.Node) }), Why{Reason: CopyGone, Node: e.Node})
		}
	}
	return next()
}

// forsake removes an attachment whose node is no more, and ends the removal: its agent never will. It proves nothing
// about that node, and lets no writer in. If its machine runs, its epoch is over or the reservation keeps its writes
// out, and an agent that finds no entry for its disk detaches it. A copy stays in the record: it may have data that
// no other has.
func forsake(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Kind.Traits().Attaches || f.braked() {
		return next()
	}
	for i := range v.Replicas {
		e := &v.Replicas[i]
		if v.ownedBy(e.Node) || !f.forsaken(e) || f.wanted(e.Node) {
			continue
		}
		state := Removing
		if e.State == Removing {
			state = Gone
		}
		return record(v.with(func(n *Volume) { n.entry(e.Node).State = state }), Why{Reason: NodeForsaken, Node: e.Node})
	}
	return next()
}

// forsaken tells whether the cluster has no such storage node any more, and was not heard of for long.
func (f *ControllerFacts) forsaken(e *Replica) bool { return f.node(e.Node).Unlisted && missing(f, e) }

// Suspected tells whether a majority of the witnesses, the suspect not among
// them, cannot reach it. It may be wrong; it only starts the search for a proof.
func Suspected(witnesses []Witness) bool {
	dead := 0
	for _, w := range witnesses {
		if !w.Alive {
			dead++
		}
	}
	return 2*dead > len(witnesses)
}

// BrakeHolds tells whether so many nodes look lost that the controller's own view
// is more likely at fault than they are. One lost node is never a mass failure.
func BrakeHolds(nodes []Machine) bool {
	lost, listed := 0, 0
	for i := range nodes {
		if nodes[i].Unlisted {
			continue
		}
		listed++
		if nodes[i].Lost {
			lost++
		}
	}
	return lost >= 2 && 3*lost > listed
}
