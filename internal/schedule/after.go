package schedule

import "k8s.io/client-go/tools/cache"

// After wraps an informer so that next runs after every handler. A feed that gets
// this informer tells the ledger first, so that next can ask the ledger.
func After(informer Informer, next cache.ResourceEventHandler) Informer {
	return after{informer, next}
}

type after struct {
	Informer
	next cache.ResourceEventHandler
}

// AddEventHandler adds a handler, followed by the next one.
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
