package replica

import (
	"maps"
	"sync"
)

// Orphans are the volumes in the node's pools that no Volume accounts for, with
// what to tell people about each. It is a cache: the pools are the truth, and
// a restart finds the same orphans again.
type Orphans struct {
	mu       sync.Mutex
	messages map[string]string
}

// Add notes an orphan.
func (o *Orphans) Add(id, message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.messages == nil {
		o.messages = map[string]string{}
	}
	o.messages[id] = message
}

// Forget drops an orphan that was found to be none, or is gone.
func (o *Orphans) Forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.messages, id)
}

// All returns the orphans by volume id.
func (o *Orphans) All() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.messages)
}
