package orphans

import (
	"maps"
	"sync"
	"time"

	"berth.dev/berth/api/v1alpha1"
)

// Orphan says why data is an orphan.
type Orphan struct {
	Reason v1alpha1.OrphanReason
	// Message is for people.
	Message string
}

// Set is the volumes, or the snapshots, in the node's pools that no object accounts
// for. It is a cache: the pools are the truth, and after a restart the agent finds the same
// orphans again. Until then it relies on those of the last report: else the first report
// after the restart would lack them, and the time since when they are orphans would be lost.
type Set struct {
	// Now is the clock that Known uses; without one Known returns 0.
	Now func() time.Time

	mu     sync.Mutex
	found  map[string]Orphan
	first  map[string]time.Time
	notify func()

	inherited bool
	looked    map[string]bool // ids that were added or forgotten before Inherit
}

// Inherit takes over the orphans of the last report of an earlier run, except those that were
// added or forgotten since the start. Only the first call does anything.
func (o *Set) Inherit(earlier map[string]Orphan) {
	o.change(func() bool {
		if o.inherited {
			return false
		}
		news := false
		for id, why := range earlier {
			if !o.looked[id] {
				o.put(id, why)
				news = true
			}
		}
		o.inherited, o.looked = true, nil
		return news
	})
}

func (o *Set) put(id string, why Orphan) {
	if o.found == nil {
		o.found, o.first = map[string]Orphan{}, map[string]time.Time{}
	}
	if _, known := o.found[id]; !known && o.Now != nil {
		o.first[id] = o.Now()
	}
	o.found[id] = why
}

func (o *Set) look(id string) {
	if o.inherited {
		return
	}
	if o.looked == nil {
		o.looked = map[string]bool{}
	}
	o.looked[id] = true
}

// Notify sets f as the function to call after a change. f must not block.
func (o *Set) Notify(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notify = f
}

// Add notes an orphan and returns whether that is news.
func (o *Set) Add(id string, why Orphan) bool {
	return o.change(func() bool {
		o.look(id)
		old := o.found[id]
		o.put(id, why)
		return old != why
	})
}

// Forget drops an orphan that was found to be none, or is gone.
func (o *Set) Forget(id string) {
	o.change(func() bool {
		o.look(id)
		_, known := o.found[id]
		delete(o.found, id)
		delete(o.first, id)
		return known
	})
}

// Known returns how long this process has known data as an orphan, without a break.
func (o *Set) Known(id string) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, known := o.first[id]
	if !known {
		return 0
	}
	return o.Now().Sub(first)
}

// change applies an edit and, if it made a difference, calls notify.
func (o *Set) change(edit func() bool) bool {
	o.mu.Lock()
	changed, notify := edit(), o.notify
	o.mu.Unlock()
	if changed && notify != nil {
		notify()
	}
	return changed
}

// All returns the orphans by id.
func (o *Set) All() map[string]Orphan {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.found)
}
