package worker

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
)

// Objects is the API server, for objects O of one kind with entries E.
type Objects[O, E any] interface {
	// Watched returns an object of this node from the watch; it may be stale.
	Watched(ctx context.Context, name string) (O, error)
	// Live reads an object from the API server.
	Live(ctx context.Context, name string) (O, error)
	// Report applies this node's entry if the object is still the one given; else
	// the error is a conflict.
	Report(ctx context.Context, o O, entry *E) error
	// Class returns a PoolClass from the watch.
	Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error)
}

// Access is how the worker gets at objects of one kind, and at their data on the node's disks. R is
// the provisioner's record.
type Access[O, E, R any] interface {
	Objects[O, E]
	// Record returns the provisioner's record, or provision.ErrNotFound.
	Record(ctx context.Context, id string) (R, error)
	// Make carries out a step that makes the data, or changes the data of a record.
	Make(ctx context.Context, o O, verb decide.Verb, record *R) (*R, error)
	// Delete deletes data, and fails while it is used.
	Delete(ctx context.Context, record *R) error
}
