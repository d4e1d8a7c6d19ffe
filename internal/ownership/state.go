package ownership

import "berth.dev/berth/internal/lineage"

// State is the state of one replica, apart from its role. One chart serves copies
// and attachments; the words in brackets are the terms for a shared disk:
//
//	Reserved ──► Syncing ◄──► Failed                  (pending, attaching, attach failed)
//	   ▲          │  ▲ ▲        │
//	   │          ▼  │ │        │
//	  Lost ◄── Ready ◄─► Lagging │                    (attached)
//	   │          │  │     │    │
//	   │          ▼  └─► Diverged ──► Syncing
//	   └──────► Syncing
//
//	any of these ──► Removing ──► Gone                (detaching, detached)
//	                    │
//	                    └──► Syncing    the second look refused: the copy is needed after all
//
// The steps between Removing and Gone (condemned, in the trash, destroyed) are
// the node's own and are kept with the copy, not in the record.
type State int

const (
	// Reserved: room is promised, nothing is there.
	Reserved State = iota
	// Syncing: the node is filling or repairing its copy.
	Syncing
	// Ready: may become primary.
	Ready
	// Lagging: in the lineage, but more than one snapshot behind.
	Lagging
	// Diverged: holds data outside the lineage; it is put aside before anything else.
	Diverged
	// Failed: the provisioner reported an error.
	Failed
	// Lost: the node answered that it has no copy where one was recorded.
	Lost
	// Removing: the record has decided that the copy may go. It counts no more.
	Removing
	// Gone: the node has destroyed it. Only from here an entry leaves the record.
	Gone
)

var stateNames = [...]string{"Reserved", "Syncing", "Ready", "Lagging", "Diverged", "Failed", "Lost", "Removing", "Gone"}

func (s State) String() string { return stateNames[s] }

var stateEdges = map[[2]State]bool{
	{Reserved, Syncing}: true, {Reserved, Ready}: true, {Reserved, Failed}: true, {Reserved, Removing}: true,
	{Syncing, Ready}: true, {Syncing, Lagging}: true, {Syncing, Diverged}: true, {Syncing, Failed}: true,
	{Syncing, Lost}: true, {Syncing, Removing}: true,
	{Ready, Lagging}: true, {Ready, Diverged}: true, {Ready, Syncing}: true, {Ready, Lost}: true,
	{Ready, Failed}: true, {Ready, Removing}: true,
	{Lagging, Ready}: true, {Lagging, Diverged}: true, {Lagging, Syncing}: true, {Lagging, Lost}: true,
	{Lagging, Failed}: true, {Lagging, Removing}: true,
	{Diverged, Syncing}: true, {Diverged, Ready}: true, {Diverged, Lagging}: true, {Diverged, Lost}: true,
	{Diverged, Removing}: true,
	{Failed, Syncing}:    true, {Failed, Removing}: true,
	{Lost, Syncing}: true, {Lost, Ready}: true, {Lost, Lagging}: true, {Lost, Removing}: true,
	{Removing, Syncing}: true, {Removing, Gone}: true,
}

// MayFollow tells whether a replica may go from one state to another.
func (s State) MayFollow(old State) bool { return s == old || stateEdges[[2]State{old, s}] }

// counts tells whether a replica in this state is one of the volume's copies.
func (s State) counts() bool { return s != Removing && s != Gone }

// Role is the part that a replica plays for the volume. It is derived, so that it
// cannot disagree with the record's primary.
type Role int

const (
	// Standby may receive and serve snapshots, or holds an attachment in reserve.
	Standby Role = iota
	// Taking: its node has opened an epoch and prepares.
	Taking
	// Writing: its node may write. The only role that is "active".
	Writing
	// Demoting: its node has stopped writing into the current epoch but the record still names it.
	Demoting
)

// RoleOf returns the role of the node's replica.
func RoleOf(v *Volume, node string) Role {
	r, _ := v.Replica(node)
	switch {
	case !v.ownedBy(node):
		return Standby
	case r.Unstaged == v.Epoch:
		return Demoting
	case v.Primary.Phase == Preparing:
		return Taking
	default:
		return Writing
	}
}

// observe is the state that the node should report for its copy.
func observe(f *NodeFacts) State {
	if !f.traits().Data {
		if f.Disk.Link == Attached || f.Mounted && !f.Record.executes(f.Me) {
			return Ready // a path that is away for seconds changes nothing, unless the node is to shut another one out
		}
		return Syncing
	}
	v, c := f.Record, &f.Copy
	if !c.Exists {
		return Lost
	}
	if f.Mounted || v.ownedBy(f.Me) {
		return Ready
	}
	relation, common := v.Lineage.Relate(c.Points, c.Dirty, v.end())
	switch relation {
	case lineage.Empty:
		return Syncing
	case lineage.InLine:
		if newestKnown(f).Seq > common.Seq+1 {
			return Lagging
		}
		return Ready
	default:
		return Diverged
	}
}

// newestKnown is the newest valid point that the record or a peer tells of.
func newestKnown(f *NodeFacts) lineage.Point {
	best := f.Record.RecoveryPoint
	for i := range f.Record.Replicas {
		if p := f.Record.Replicas[i].Point; p.Seq > best.Seq && f.Record.Holds(p) {
			best = p
		}
	}
	for i := range f.Peers {
		if p := f.Record.Newest(f.Peers[i].Copy.Points); p.Seq > best.Seq {
			best = p
		}
	}
	return best
}
