// Package orphans keeps what is in a node's pools and in no object: it is never
// removed, and people are told.
package orphans

import (
	"maps"
	"sync"
)

// Set is the volumes, or the snapshots, in the node's pools that no object accounts
// for, with what to tell people about each. It is a cache: the pools are the truth, and
// a restart finds the same orphans again.
type Set struct {
	mu       sync.Mutex
	messages map[string]string
	notify   func()
}

// Notify has changes told to f, which must not block.
func (o *Set) Notify(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notify = f
}

// Add notes an orphan and returns whether that is news.
func (o *Set) Add(id, message string) bool {
	return o.change(func() bool {
		if o.messages == nil {
			o.messages = map[string]string{}
		}
		old, known := o.messages[id]
		o.messages[id] = message
		return !known || old != message
	})
}

// Forget drops an orphan that was found to be none, or is gone.
func (o *Set) Forget(id string) {
	o.change(func() bool {
		_, known := o.messages[id]
		delete(o.messages, id)
		return known
	})
}

// change applies an edit and, if it made a difference, tells of it.
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
func (o *Set) All() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.messages)
}
