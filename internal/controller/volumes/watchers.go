package volumes

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
)

// Watchers hands the informer's events about a volume to the calls that wait
// for them. The zero value is ready to use.
type Watchers struct {
	mu     sync.Mutex
	byName map[string]map[*watcher]struct{}
}

// event is the latest state of a volume. The object is the cache's own: read only.
type event struct {
	volume  *v1alpha1.Volume
	deleted bool
}

// watcher keeps the newest event until its call asks for it. Older ones are
// overwritten: a caller wants to know the state, not the history, and a slow
// caller must not hold up the informer.
type watcher struct {
	registry *Watchers
	name     string
	slot     chan event
}

// Handler is what the informer of Volumes calls.
func (w *Watchers) Handler() cache.ResourceEventHandler {
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

func (w *Watchers) notify(obj any, deleted bool) {
	v, ok := obj.(*v1alpha1.Volume)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for each := range w.byName[v.Name] {
		each.put(event{volume: v, deleted: deleted})
	}
}

// watch begins to collect events about a volume; stop ends it. It must begin
// before the write whose answer is awaited.
func (w *Watchers) watch(name string) *watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil {
		w.byName = map[string]map[*watcher]struct{}{}
	}
	if w.byName[name] == nil {
		w.byName[name] = map[*watcher]struct{}{}
	}
	each := &watcher{registry: w, name: name, slot: make(chan event, 1)}
	w.byName[name][each] = struct{}{}
	return each
}

// put runs under the registry's lock, so there is one writer: once the slot is
// emptied it cannot fill up again before the send.
func (each *watcher) put(e event) {
	select {
	case <-each.slot:
	default:
	}
	each.slot <- e
}

// next waits for an event newer than the last one returned.
func (each *watcher) next(ctx context.Context) (event, error) {
	select {
	case e := <-each.slot:
		return e, nil
	case <-ctx.Done():
		return event{}, ctx.Err()
	}
}

func (each *watcher) stop() {
	each.registry.mu.Lock()
	defer each.registry.mu.Unlock()
	all := each.registry.byName[each.name]
	delete(all, each)
	if len(all) == 0 {
		delete(each.registry.byName, each.name)
	}
}
