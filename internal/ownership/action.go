package ownership

import (
	"time"

	"berth.dev/berth/internal/lineage"
)

// Verb is an effect that the shell carries out. Every effect is idempotent, and
// every rule may be asked again after any of them, done or not: a decision depends
// on the present facts, never on earlier decisions.
type Verb int

const (
	// Nothing to do.
	Nothing Verb = iota
	// Done: the requested state has been reached.
	Done
	// Wait: not now; ask again when something changed.
	Wait
	// Refuse: not at all; tell the user why.
	Refuse
	// GiveUp: go on with UnstageRules; this epoch must be released first.
	GiveUp
	// Record writes Next by compare-and-swap against the record that was read.
	Record
	// Persist stores Promise with the copy.
	Persist
	// Open stores that the copy is about to be made writable in Promise.Epoch. If there is a Key, it then
	// registers that as Register does.
	Open
	// Close stores that nothing will be written into Promise.Epoch again.
	Close
	// Grow makes the copy Size bytes large, and the filesystem with it if it is mounted. A copy for
	// which nothing was made yet is made. If there is no room, the shell sets NodeFacts.Full for a while.
	Grow
	// Pull asks From for the snapshot To as an increment on Base (zero: in full).
	Pull
	// Preserve puts everything beyond the common point aside as a branch.
	Preserve
	// RollBack returns the copy to the snapshot To.
	RollBack
	// Snapshot takes the snapshot To of the live data.
	Snapshot
	// Drop deletes Points.
	Drop
	// Register makes Key the key of this session at the disk, whatever it was before.
	// The shell first makes sure that nothing but the mount of Key's epoch, if there is
	// one, has unwritten data for the device.
	Register
	// Reserve takes the reservation for this session with Key if its holder still is Expect. Where several
	// nodes write it removes the registrations with the key Expect, and has the disk reserved for all that are
	// registered.
	// A reservation is never given up: a node that was shut out could write again. The next
	// epoch takes it.
	Reserve
	// Attach attaches the disk to this node; Detach detaches it, and cleans up after an
	// attach that failed. Neither waits: Disk.Link tells how far it is.
	Attach
	Detach
	// Mount makes the volume writable, after a consistency check if Check.
	Mount
	// Unmount flushes and unmounts. If every write reached the disk, it stores that
	// (Copy.Flushed) before it returns.
	Unmount
	// Condemn moves the copy to the trash until Until; Reprieve takes it out.
	Condemn
	Reprieve
	// Quarantine marks an orphaned copy until Until.
	Quarantine
	// Destroy deletes the copy for good.
	Destroy
)

var verbs = [...]string{"nothing", "done", "wait", "refuse", "give up", "record", "persist", "open", "close", "grow", "pull", "preserve",
	"roll back", "snapshot", "drop", "register", "reserve", "attach", "detach", "mount", "unmount", "condemn", "reprieve", "quarantine", "destroy"}

func (v Verb) String() string { return verbs[v] }

// Action is a decision: what to do, with its arguments, and why.
type Action struct {
	Verb Verb
	Why

	Next     *Volume
	Promise  Promise
	From     string
	Base, To lineage.Point
	Points   []lineage.Point
	Key      Key
	Expect   RawKey
	Check    bool
	Until    time.Time
	Size     int64
}

// Why is the reason of a decision. It is formatted only when Message is called.
type Why struct {
	Reason Reason
	// Node, Point, Epoch and Count are the particulars the message names.
	Node  string
	Point lineage.Point
	Epoch lineage.Epoch
	Count int
}

func wait(w Why) (Action, bool)   { return Action{Verb: Wait, Why: w}, true }
func refuse(w Why) (Action, bool) { return Action{Verb: Refuse, Why: w}, true }
func next() (Action, bool)        { return Action{}, false }
func record(v *Volume, w Why) (Action, bool) {
	return Action{Verb: Record, Next: v, Why: w}, true
}
