package usecase

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/keyed"
)

// Objects reads, locks, awaits and deletes objects of one kind for the use cases. Its
// methods may be called concurrently.
type Objects[T Object] struct {
	// Kind in messages: "volume".
	Kind string
	// New makes an empty one to read into.
	New func() T
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Watchers must be fed by the informer behind Client.
	Watchers *Watchers[T]

	locks keyed.Locks[string]
}

// Lock refuses a second call for the same object. It does not queue: the sidecar repeats
// its call by itself, and a queue of cancelled calls would only delay the live one.
func (s *Objects[T]) Lock(name string) (unlock func(), err error) {
	unlock, err = s.locks.TryLock(name)
	if err != nil {
		return nil, Fail(ErrBusy, "another operation on %s %s is in progress", s.Kind, name)
	}
	return unlock, nil
}

// Get reads an object from the API server, or returns nil if there is none, and with
// every error.
func (s *Objects[T]) Get(ctx context.Context, name string) (T, error) {
	return s.read(ctx, s.Live, name)
}

// Find is Get for an object that is expected not to exist. An object that is in the cache is
// read live: that is a repeated call, which is rare, and the cache may lag behind a deletion.
func (s *Objects[T]) Find(ctx context.Context, name string) (T, error) {
	var none T
	if o, err := s.read(ctx, s.Client, name); o == none {
		return none, err
	}
	return s.Get(ctx, name)
}

// read returns an object, or nil if there is none, and with every error.
func (s *Objects[T]) read(ctx context.Context, from client.Reader, name string) (T, error) {
	var none T
	o := s.New()
	err := from.Get(ctx, types.NamespacedName{Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %s %s: %w", s.Kind, name, err)
	}
	return o, nil
}

// Delete deletes an object and returns once removed has an answer other than to wait,
// or the object is gone. A missing object is no error.
func (s *Objects[T]) Delete(ctx context.Context, name string, removed func(T) Answer) error {
	unlock, err := s.Lock(name)
	if err != nil {
		return err
	}
	defer unlock()
	events := s.Watchers.Watch(name)
	defer events.Stop()

	var none T
	o, err := s.Get(ctx, name)
	if o == none {
		return err
	}
	if o, err = s.mark(ctx, o); o == none {
		return err
	}
	_, answer, _, err := s.Await(ctx, events, o, removed)
	if err != nil {
		return err
	}
	return answer.Err() // nil if the object is gone
}

// mark deletes the object at the API server, which makes the deletion durable. It
// returns the object as it was before, or nil if it is gone, and with every error.
func (s *Objects[T]) mark(ctx context.Context, o T) (T, error) {
	var none T
	if o.GetDeletionTimestamp() != nil {
		return o, nil
	}
	uid := o.GetUID()
	err := s.Client.Delete(ctx, o, client.Preconditions{UID: &uid})
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case apierrors.IsConflict(err):
		return none, Fail(ErrBusy, "%s %s was replaced while it was being deleted", s.Kind, o.GetName())
	case err != nil:
		return none, fmt.Errorf("deleting %s %s: %w", s.Kind, o.GetName(), err)
	}
	return o, nil
}
