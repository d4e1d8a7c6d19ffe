package schedule

import "k8s.io/client-go/tools/cache"

// After is an informer whose every handler is followed by another one. A feed
// that is given it tells the ledger first, so that what follows can ask the
// ledger.
func After(informer Informer, next cache.ResourceEventHandler) Informer {
	return after{informer, next}
}

type after struct {
	Informer
	next cache.ResourceEventHandler
}

// AddEventHandler adds a handler, and the next one behind it.
func (a after) AddEventHandler(first cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return a.Informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			first.OnAdd(obj, initial)
			a.next.OnAdd(obj, initial)
		},
		UpdateFunc: func(old, obj any) {
			first.OnUpdate(old, obj)
			a.next.OnUpdate(old, obj)
		},
		DeleteFunc: func(obj any) {
			first.OnDelete(obj)
			a.next.OnDelete(obj)
		},
	})
}
