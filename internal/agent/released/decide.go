package released

import (
	"cmp"
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
)

// Facts are all that a decision rests on.
type Facts struct {
	// Node is this node.
	Node string
	// LUN as the API server has it; nil if it has none.
	LUN *v1alpha1.LUN
	// View of the disk, read after the LUN.
	View shared.View
}

// The verbs. Each leads to a new decision.
const (
	// Rest: there is nothing to do on this node.
	Rest decide.Verb = "Rest"
	// Wait for an attach that is under way.
	Wait     decide.Verb = "Wait"
	Attach   decide.Verb = "Attach"
	Detach   decide.Verb = "Detach"
	Register decide.Verb = "Register"
	Reserve  decide.Verb = "Reserve"
	// Erase wipes the disk, from where it is wiped to its end.
	Erase decide.Verb = "Erase"
	// Record replaces the LUN's wipe.
	Record decide.Verb = "Record"
)

// The reasons.
const (
	NotOurs         = "NotOurs"
	Attaching       = "Attaching"
	AttachFailed    = "AttachFailed"
	HolderUnknown   = "HolderUnknown"
	ReservationLost = "ReservationLost"
	ShuttingOut     = "ShuttingOut"
	Wiping          = "Wiping"
	Leaving         = "Leaving"
	Left            = "Left"
)

// Answer is a decision with its arguments.
type Answer struct {
	decide.Decision
	// Key of Register, zero for none, and of Reserve; and the holder that Reserve takes the reservation from.
	Key, Expect ownership.RawKey
	// Next is the wipe that Record writes.
	Next *v1alpha1.LUNWipe
}

func (f *Facts) act(v decide.Verb, why, format string, args ...any) Answer {
	return Answer{Decision: decide.Decision{Verb: v, Reason: why, Message: fmt.Sprintf(format, args...)}}
}

// next returns the next step of a wipe on this node.
func next(f *Facts) Answer {
	if f.LUN == nil || f.LUN.Status.Wipe == nil || f.LUN.Status.Wipe.Node != f.Node {
		return f.act(Rest, NotOurs, "no wipe is ordered from this node")
	}
	outcome := f.LUN.Status.Wipe.Outcome
	if outcome == v1alpha1.LUNCleared || outcome == v1alpha1.LUNWipeFailed || f.LUN.DeletionTimestamp != nil {
		return f.leave()
	}
	switch f.View.Link {
	case ownership.Attached:
		if outcome == v1alpha1.LUNWiped {
			return f.clear()
		}
		return f.take()
	case ownership.Attaching:
		return f.act(Wait, Attaching, "the disk is being attached")
	case ownership.AttachFailed:
		return f.fail(AttachFailed, "attaching the disk failed: %s", cmp.Or(f.View.Problem, "its target refused, or did not answer"))
	}
	return f.act(Attach, Attaching, "attaching the disk")
}

// take shuts every other writer out and then wipes.
func (f *Facts) take() Answer {
	w, key := f.LUN.Status.Wipe, keyOf(f.LUN)
	switch d := f.View.Disk; {
	case holds(d, key):
		return f.act(Erase, Wiping, "wiping the disk")
	case d.Holder != 0 && !d.Holder.IsLeftByWipe() && !listed(w, d.Holder): // the wipe's own key is listed
		return f.stranger()
	case d.Holder != key && w.Done > 0:
		return f.record(ReservationLost, "the reservation was not this wipe's in between: it begins anew", func(n *v1alpha1.LUNWipe) { n.Done = 0 })
	}
	return f.shutOut(key)
}

// shutOut registers this session, and takes the reservation from exactly the key that was seen.
func (f *Facts) shutOut(key ownership.RawKey) Answer {
	if f.View.Registered != key {
		a := f.act(Register, ShuttingOut, "registering this node at the disk")
		a.Key = key
		return a
	}
	a := f.act(Reserve, ShuttingOut, "taking the reservation of the disk")
	a.Key, a.Expect = key, f.View.Holder
	return a
}

// stranger leaves a disk alone that is reserved under a key of which the LUN does not know.
func (f *Facts) stranger() Answer {
	return f.fail(HolderUnknown, "the disk is reserved under the key %#x, of which this LUN does not know: whoever has that key may have data on it", uint64(f.View.Holder))
}

// clear leaves a wiped disk reserved under a key of no writer, from which the next volume takes it. Without a
// reservation a suspended writer of the last volume could resume and write: its node may have been removed from the
// record without a word of its own. The record comes after the disk shows it, so a node that restarts in between attaches
// the disk again.
func (f *Facts) clear() Answer {
	d, key := f.View.Disk, keyOf(f.LUN)
	leftByWipe := ownership.LeftByWipe(ownership.Key{Node: f.Node, Epoch: epochOf(f.LUN.Status.Wipe.Epoch)})
	switch {
	case d.Holder == leftByWipe:
		return f.record(Leaving, "the disk is wiped, and stays reserved until a volume takes it", func(n *v1alpha1.LUNWipe) { n.Outcome = v1alpha1.LUNCleared })
	case d.Holder == 0:
		return f.fail(ReservationLost, "the disk was wiped, and then had no reservation: it may have been written to")
	case d.Holder != key:
		return f.stranger()
	case !holds(d, key): // an earlier session of this node has it
		return f.shutOut(key)
	}
	a := f.act(Register, Leaving, "leaving the disk reserved until a volume takes it")
	a.Key = leftByWipe
	return a
}

// unregister ends this session's own registration, and its reservation with it. To clear the disk would end those
// of others, too: this node may have slept, and another one may have wiped the disk and given it to a volume.
func (f *Facts) unregister() Answer {
	return f.act(Register, Leaving, "ending this node's registration at the disk")
}

// leave ends what this node has of the disk.
func (f *Facts) leave() Answer {
	switch d := f.View.Disk; {
	case d.Link == ownership.Detached:
		return f.record(Left, "nothing of the disk is left on this node", func(n *v1alpha1.LUNWipe) { n.Node = "" })
	case d.Link == ownership.Attached && d.Registered != 0 && !d.Registered.IsLeftByWipe():
		return f.unregister()
	}
	return f.act(Detach, Leaving, "detaching the disk")
}

func (f *Facts) fail(why, format string, args ...any) Answer {
	said := fmt.Sprintf(format, args...)
	return f.record(why, said, func(n *v1alpha1.LUNWipe) {
		n.Outcome, n.Problem = v1alpha1.LUNWipeFailed, problem(f.Node, said)
	})
}

// problem is a message within the bounds of the schema.
func problem(node, said string) string {
	p := "node " + node + ": " + said
	return p[:min(len(p), maxProblem)]
}

const maxProblem = 512

func (f *Facts) record(why, said string, change func(n *v1alpha1.LUNWipe)) Answer {
	n := f.LUN.Status.Wipe.DeepCopy()
	change(n)
	return Answer{Decision: decide.Decision{Verb: Record, Reason: why, Message: said}, Next: n}
}

// holds says whether the disk takes the writes of this session alone, under the key. A disk that several nodes wrote is
// reserved for all sessions that are registered, and a machine that sleeps may have one of them: such a reservation is
// not the wipe's, even if this session holds it.
func holds(d ownership.Disk, key ownership.RawKey) bool {
	return d.Link == ownership.Attached && d.Holding && !d.Registrants && d.Holder == key && d.Registered == key
}

// keyOf is the key of the wipe on its node.
func keyOf(l *v1alpha1.LUN) ownership.RawKey {
	w := l.Status.Wipe
	return rawKey(v1alpha1.ReservationKey{Node: w.Node, Epoch: w.Epoch})
}

func rawKey(k v1alpha1.ReservationKey) ownership.RawKey {
	return ownership.Key{Node: k.Node, Epoch: epochOf(k.Epoch), Fence: k.Fence}.Raw()
}

func epochOf(e v1alpha1.Epoch) lineage.Epoch {
	return lineage.Epoch{Number: uint64(max(e.Number, 0)), ID: e.ID} //nolint:gosec // not negative
}

// listed says whether a key is one from which the wipe may take the disk.
func listed(w *v1alpha1.LUNWipe, key ownership.RawKey) bool {
	return slices.ContainsFunc(w.Keys, func(k v1alpha1.ReservationKey) bool { return rawKey(k) == key })
}
