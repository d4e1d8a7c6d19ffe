package usecase

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is a pointer to an object of the API.
type Object interface {
	client.Object
	comparable
}

// Watchers hands the informer's events about an object to the calls that wait
// for them. The zero value is ready to use.
type Watchers[T Object] struct {
	mu     sync.Mutex
	byName map[string]map[*Watcher[T]]struct{}
}

// event is the latest state of an object. The cache owns the object: read only.
type event[T Object] struct {
	object  T
	deleted bool
}

// Watcher keeps the newest event until its call asks for it. Older ones are
// overwritten: a caller wants to know the state, not the history, and a slow
// caller must not hold up the informer.
type Watcher[T Object] struct {
	registry *Watchers[T]
	name     string
	slot     chan event[T]
}

// Handler returns the handler for the informer of the kind.
func (w *Watchers[T]) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.notify(obj, false) },
		UpdateFunc: func(_, obj any) { w.notify(obj, false) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			w.notify(obj, true)
		},
	}
}

func (w *Watchers[T]) notify(obj any, deleted bool) {
	o, ok := obj.(T)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for each := range w.byName[o.GetName()] {
		each.put(event[T]{object: o, deleted: deleted})
	}
}

// Watch begins to collect events about an object; Stop ends it. It must begin
// before the write whose answer is awaited.
func (w *Watchers[T]) Watch(name string) *Watcher[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil {
		w.byName = map[string]map[*Watcher[T]]struct{}{}
	}
	if w.byName[name] == nil {
		w.byName[name] = map[*Watcher[T]]struct{}{}
	}
	each := &Watcher[T]{registry: w, name: name, slot: make(chan event[T], 1)}
	w.byName[name][each] = struct{}{}
	return each
}

// put runs under the registry's lock, so there is one writer: once the slot is
// emptied it cannot fill up again before the send.
func (each *Watcher[T]) put(e event[T]) {
	select {
	case <-each.slot:
	default:
	}
	each.slot <- e
}

// next waits for an event newer than the last one returned.
func (each *Watcher[T]) next(ctx context.Context) (event[T], error) {
	select {
	case e := <-each.slot:
		return e, nil
	case <-ctx.Done():
		return event[T]{}, ctx.Err()
	}
}

// Stop ends the collection.
func (each *Watcher[T]) Stop() {
	each.registry.mu.Lock()
	defer each.registry.mu.Unlock()
	all := each.registry.byName[each.name]
	delete(all, each)
	if len(all) == 0 {
		delete(each.registry.byName, each.name)
	}
}
