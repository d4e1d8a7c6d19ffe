package shell

import (
	"fmt"
	"sync"
)

// strike is a single fault, of the nth time that a process does something: it fails, or its answer is lost.
// Which of the two follows from the dice.
type strike struct {
	process string
	doing
	nth uint64
}

func (s strike) String() string {
	return fmt.Sprintf("         single fault of %s: %s %s, the %d. time", s.process, s.what, s.about, s.nth)
}

// strikes are the single faults of a schedule.
type strikes struct {
	// only these hit; nil leaves it to the dice.
	only map[strike]bool

	mu  sync.Mutex
	hit []strike
}

func newStrikes(p *plan) *strikes {
	s := &strikes{}
	if p.exact {
		s.only = map[strike]bool{}
		for _, x := range p.strikes {
			s.only[x] = true
		}
	}
	return s
}

// strikes says whether a single fault hits. No fault does once all have ended.
func (w *world) strikes(x strike, dice bool) bool {
	if w.singles.only != nil {
		dice = w.singles.only[x]
	}
	if !dice || !w.troubled() {
		return false
	}
	w.singles.mu.Lock()
	defer w.singles.mu.Unlock()
	w.singles.hit = append(w.singles.hit, x)
	return true
}
