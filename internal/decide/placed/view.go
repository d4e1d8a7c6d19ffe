package placed

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
)

// Facts are a node's knowledge of the data of one object, besides its entry.
type Facts[R any] struct {
	// Record is the provisioner's; nil when the provisioner says that it has none. A
	// provisioner that does not answer must not be taken for one that has none.
	Record *R
	// Made is whether this process made the data, after it saw that the node had nothing of
	// the object's name.
	Made bool
	// Lost is whether a missing record proves nothing: the pool that the entry names is not
	// in the node's report, and no administrator has given the data up.
	Lost bool
}

// View is all that a node looks at to decide about the data of one object.
type View[O Object[E], E, R any] struct {
	Facts[R]
	Object O
	Node   string
	// Wish is what the spec asks of the node; nil if it asks nothing.
	Wish *v1alpha1.ReplicaSpec
	// Entry is the node's entry in the status; nil if there is none.
	Entry *E
}

// Look returns the view of an object on a node.
func Look[O Object[E], E, R any](o O, node string, f Facts[R]) View[O, E, R] {
	return View[O, E, R]{Facts: f, Object: o, Node: node, Wish: o.Wish(node), Entry: o.Entry(node)}
}

// Wanted says whether the object wants its data on the node.
func (v View[O, E, R]) Wanted() bool {
	return v.Wish != nil && v.Object.GetDeletionTimestamp().IsZero()
}

// Unwanted says whether the object does not want its data on the node.
func (v View[O, E, R]) Unwanted() bool { return !v.Wanted() }

// Missing says whether there is no data.
func (v View[O, E, R]) Missing() bool { return v.Record == nil }

// Owed says whether the object waits to be told that its data is gone.
func (v View[O, E, R]) Owed() bool { return v.Entry != nil || v.Wish != nil }

// Unconcerned says whether there is neither data nor an object that wants any, or waits to be told.
func (v View[O, E, R]) Unconcerned() bool { return v.Missing() && !v.Owed() }

// Away says whether data that should go is in a pool that is not there.
func (v View[O, E, R]) Away() bool { return v.Unwanted() && v.Missing() && v.Lost }

// Gone says whether data that should go is gone.
func (v View[O, E, R]) Gone() bool { return v.Unwanted() && v.Missing() }

// Remedy tells an administrator what to do about data that is not its object's own.
func (v View[O, E, R]) Remedy(kind string) string {
	name := v.Object.GetName()
	return fmt.Sprintf("`kubectl berth adopt %s %s` makes a %s for it as it is, and `kubectl berth forget %s %s` lets it go once there is no %s of its name",
		v.Node, name, kind, v.Node, name, kind)
}

// KeptAsItIs is the message about data that is there in place of the object's.
func (v View[O, E, R]) KeptAsItIs(kind, why string) string {
	return fmt.Sprintf("node %s: %s: it is kept as it is; %s", v.Node, why, v.Remedy(kind))
}

// PoolIsAway is the message about data that should go from a pool that is not there.
func (v View[O, E, R]) PoolIsAway(what, pool string) string {
	remedy, name := "bring the pool back", v.Object.GetName()
	if !v.Object.GetDeletionTimestamp().IsZero() { // forget counts only then
		remedy += fmt.Sprintf(", or, if it is lost for good, `kubectl berth forget %s %s`", v.Node, name)
	}
	return entries.Clip(fmt.Sprintf("node %s: pool %s is not there, and %s %s cannot be removed from it: %s", v.Node, pool, what, name, remedy))
}
