package worker

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/decide/placed"
)

// Object is a Volume or a Snapshot, and E the type of a node's entry in it.
type Object[E any] interface {
	client.Object
	Entry(node string) *E
}

// Kind is what the worker must know of one kind of data. O is its object, E a node's entry in
// the object's status, and R the provisioner's record.
type Kind[O Object[E], E, R any] interface {
	// What names the kind for people.
	What() string
	Objects[O, E]
	Decisions[O, E, R]
	Disks[O, E, R]
}

// Objects is the API server, for objects of one kind.
type Objects[O, E any] interface {
	// Watched returns an object of this node from the watch; it may be stale.
	Watched(ctx context.Context, name string) (O, error)
	// Live reads an object from the API server.
	Live(ctx context.Context, name string) (O, error)
	// Report applies this node's entry if the object is still the one given; else
	// the error is a conflict.
	Report(ctx context.Context, o O, entry *E) error
}

// Decisions are those about objects of one kind on this node. None reads or writes anything.
type Decisions[O, E, R any] interface {
	// Decide decides about an object by the facts.
	Decide(o O, f placed.Facts[R]) placed.Answer[E]
	// Refusal answers an object whose step failed.
	Refusal(o O, f placed.Facts[R], verb decide.Verb, reason, message string) placed.Answer[E]
	// Settled says whether there is nothing to do for an object while no report of the pools
	// shows its data.
	Settled(o O) bool
	// Doubt returns the pool that an entry names for data that should go. While that pool is not
	// read, a missing record proves nothing.
	Doubt(o O) (pool string, doubted bool)
	// Says returns whether an entry, which may be nil, says that the data is the object's own, and
	// whether it says that nothing is left.
	Says(entry *E) (data, gone bool)
}

// Disks are the node's, for data of one kind.
type Disks[O, E, R any] interface {
	// Record returns the provisioner's record, or provision.ErrNotFound.
	Record(ctx context.Context, id string) (R, error)
	// Describe returns the data of a record, and what to tell people if it has no object.
	Describe(record *R) (data orphan.Record, noObject string)
	// Unsure says whether the record of new data does not tell it from data that a pod may have
	// used. Then the worker looks for a record before it makes the data.
	Unsure(o O) bool
	// Make carries out a step that makes the data, or changes the data of a record.
	Make(ctx context.Context, o O, verb decide.Verb, record *R) (*R, error)
	// MayExist says whether Make may have failed because an earlier run of the agent made the data.
	MayExist(err error) bool
	// Delete deletes data, and fails while it is used.
	Delete(ctx context.Context, record *R) error
	// Finish begins what is left to do once the data was reported. It must not block.
	Finish(o O, answer placed.Answer[E])
}
