package binding

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/internal/signal"
)

// waiters wakes the goroutines that wait for a change of a claim. It does not say
// what has changed: a woken goroutine looks at the listers, which are as new as the
// event or newer.
type waiters struct {
	mu    sync.Mutex
	byKey map[key]map[signal.Signal]bool
}

// key is a claim. A PersistentVolume counts as its claim.
type key struct{ namespace, name string }

func newWaiters() *waiters { return &waiters{byKey: map[key]map[signal.Signal]bool{}} }

// wait begins to listen. stop ends it.
func (w *waiters) wait(keys []key) (woken <-chan struct{}, stop func()) {
	c := signal.New()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keys {
		if w.byKey[k] == nil {
			w.byKey[k] = map[signal.Signal]bool{}
		}
		w.byKey[k][c] = true
	}
	return c, func() { w.forget(keys, c) }
}

func (w *waiters) forget(keys []key, c signal.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keys {
		delete(w.byKey[k], c)
		if len(w.byKey[k]) == 0 {
			delete(w.byKey, k)
		}
	}
}

func (w *waiters) wake(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.byKey[k] {
		c.Set()
	}
}

// handler wakes the goroutines that wait for the objects of one informer.
func (w *waiters) handler() cache.ResourceEventHandler {
	wake := func(obj any) {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		if k, ok := keyOf(obj); ok {
			w.wake(k)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		UpdateFunc: func(_, obj any) { wake(obj) },
		DeleteFunc: wake,
	}
}

func keyOf(obj any) (key, bool) {
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return key{namespace: o.Namespace, name: o.Name}, true
	case *corev1.PersistentVolume:
		if claim := o.Spec.ClaimRef; claim != nil {
			return key{namespace: claim.Namespace, name: claim.Name}, true
		}
	}
	return key{}, false
}
