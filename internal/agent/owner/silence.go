package owner

import (
	"sync"
	"time"
)

// quietFor is for how long a node that did not answer about a volume is asked about no shared disk. Each change of
// the record begins a chain of decisions, and each chain would wait for a node without power, while a pod waits for
// its volume.
const quietFor = 3 * time.Second

// silences are the nodes that did not answer, and when they were asked. The process may forget them.
type silences struct {
	mu sync.Mutex
	at map[string]time.Time
}

// recall takes nodes that did not answer another chain a moment ago for silent.
func (s *silences) recall(a *asking, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for node, at := range s.at {
		if age := now.Sub(at); age < 0 || age >= quietFor { // the clock may have been set back
			delete(s.at, node)
			continue
		}
		a.quiets(node)
	}
}

// note remembers the nodes that this decision has found silent. One that it only recalled keeps its time.
func (s *silences) note(a *asking, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]time.Time{}
	}
	for _, node := range a.unheard {
		s.at[node] = now
	}
	a.unheard = nil
}
