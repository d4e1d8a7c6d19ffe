package ownership

import (
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
)

// Copy is a node's durable knowledge of its own replica. The node keeps it with the
// data (logical volume tags, dataset properties) and not in the API, so it survives
// an API server that was restored from an old backup. The zero Copy is no replica.
type Copy struct {
	Exists bool
	// Size is how many bytes the node has made for the data, zero if none yet. No copy shrinks.
	Size int64
	// Promise is the newest epoch the node has heard of. It takes no data from
	// an older one but what the promise's history has.
	Promise Promise
	// Opened is the epoch in which this copy was last made writable here. Closed is
	// the newest epoch of its own that the node gave up, written or not: it never
	// writes into that or an earlier one again, even if a restored backup says
	// that it still owns it. Both only grow: see nextEpoch.
	Opened, Closed lineage.Epoch
	// Flushed is the newest epoch of its own after which the node unmounted the volume
	// with every write on the disk.
	Flushed lineage.Epoch
	// Points are the snapshots held, ascending; Dirty says that the live data
	// has changed since the last one.
	Points []lineage.Point
	Dirty  bool
	// Preserved is the newest point that was put aside as a branch of its own,
	// so that rolling back destroys nothing.
	Preserved lineage.Point
	// Holds keep points for others; each has an owner and an end.
	Holds []Hold
	// Condemned: the node has decided to destroy the copy, at DestroyAt.
	// Quarantined: the copy looks orphaned and waits for DestroyAt.
	Condemned   bool
	Quarantined bool
	DestroyAt   time.Time
}

// Promise is a node's durable knowledge of an epoch: who opened it and from where.
type Promise struct {
	Epoch   lineage.Epoch
	Primary string
	Boot    string
	Lineage lineage.Lineage
	// Losses are those that the record listed when the epoch began: a restored
	// backup may have forgotten them.
	Losses []Loss
}

// Hold keeps a point from retention while another node relies on it.
type Hold struct {
	For   string
	Point lineage.Point
	Until time.Time
}

// GaveUp tells whether the node gave up e, an epoch of its own. Zero, no epoch,
// counts as given up. Comparing numbers suffices, because the numbers of a node's
// own epochs grow. Comparing for equality would forget an epoch that was given up
// before it was opened, as soon as the node gives up another.
func (c *Copy) GaveUp(e lineage.Epoch) bool { return e.Number <= c.Closed.Number }

// Tip is the newest snapshot, zero if there is none.
func (c *Copy) Tip() lineage.Point {
	if len(c.Points) == 0 {
		return lineage.Point{}
	}
	return c.Points[len(c.Points)-1]
}

// Has tells whether the snapshot is held.
func (c *Copy) Has(p lineage.Point) bool {
	for _, v := range slices.Backward(c.Points) {
		if v == p {
			return true
		}
	}
	return false
}

// Peer is the answer of another node, asked now. Nodes that did not answer are
// not listed: silence is no answer.
type Peer struct {
	Node string
	Copy Copy
	// Confirmed: the peer has checked that it holds the asker's data and keeps it
	// for the asker for a while.
	Confirmed bool
	// Age is the age of the newest of the peer's snapshots that the volume holds
	// (Volume.Newest): a failover to it loses the writes since. The peer's very newest
	// may be a branch.
	Age time.Duration
	// Near and Load order the sources of a catch-up.
	Near bool
	Load int
}

// NodeFacts are everything a node's rules may look at. The shell gathers them
// in this order under the volume's lock and holds the lock until the action is
// carried out: own copy and mounts, the record by an uncached read, then the
// answers of the peers and the disk.
type NodeFacts struct {
	Me, Boot string
	Now      time.Time
	// Record is the uncached record; nil if it was not read.
	Record *Volume
	// Absent says that the API answered that there is no record. If Record is nil and Absent is
	// false, the record could not be read. The rules then touch only what needs no record, so a
	// shell that loses an error can neither quarantine a copy nor end an unmount too early.
	Absent bool
	Copy   Copy
	// Wanted: the kubelet asks for the volume here.
	Wanted bool
	// Unstaging: the kubelet asks to let go of it here.
	Unstaging bool
	// Mounted: the volume is mounted read-write here, in epoch Copy.Opened.
	Mounted bool
	// ShutDown: the filesystem that is mounted has shut itself down, because its disk failed writes. It takes
	// none before it is mounted anew.
	ShutDown bool
	// Held: the node gave the epoch up, and a pod has the volume nonetheless. The shell has tried to take it off.
	Held bool
	// Full: the node had no room when it tried to make the copy larger, and shall not try again yet.
	Full bool
	// SnapshotDue: the interval has passed.
	SnapshotDue bool
	Peers       []Peer
	Disk        Disk
	// OutOfService: an administrator declared this node dead.
	OutOfService bool
	// SinceRenewal is the time since this node last renewed its lease, by its
	// boot-time clock.
	SinceRenewal time.Duration
	// Lapsed: MustStop has told this node to stop, and the copy does not keep yet that its epochs
	// are over: by the promise of another node's later epoch, or by having given its own up. They
	// may have been fenced since, whatever a record from a backup says of them.
	Lapsed bool
	// FreshID is a random id for a new epoch.
	FreshID string
	// Keep is how many snapshots beyond the necessary are kept.
	Keep int
}

func recordRead(f *NodeFacts) (Action, bool) {
	if f.Record == nil && !f.Absent {
		return wait(Why{Reason: RecordUnread})
	}
	return next()
}

func (f *NodeFacts) traits() *Traits { return f.Record.Kind.Traits() }
