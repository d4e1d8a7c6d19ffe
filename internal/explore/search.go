package explore

import (
	"sync"
	"sync/atomic"
	"time"
)

// search is one exhaustive exploration. Each worker goes depth first through a
// stack of its own, so that few worlds are in memory at once. It gives its oldest
// world, which has the most beneath it, to idle workers.
type search struct {
	bounds Bounds
	seen   visited
	// key, if not nil, tells worlds apart instead of canon.
	key func(*World) [2]uint64
	// reduced: a step is taken at once if no process can tell it from a later one.
	reduced bool

	visits, transitions, settled, depth atomic.Int64
	stop                                atomic.Bool
	idle                                atomic.Int64

	mu     sync.Mutex
	spare  []reached
	wake   *sync.Cond
	waits  int
	result Explored
}

// reached is a world still to go on from, and the way there.
type reached struct {
	w    World
	left budget
	way  *way
}

type way struct {
	before *way
	event  Event
	length int
}

func (y *way) then(e Event) *way {
	n := 1
	if y != nil {
		n += y.length
	}
	return &way{before: y, event: e, length: n}
}

func (y *way) events() (out []Event) {
	if y == nil {
		return nil
	}
	out = make([]Event, y.length)
	for ; y != nil; y = y.before {
		out[y.length-1] = y.event
	}
	return out
}

// Watch is told how far a search is, whenever it is due. The zero value never is.
type Watch struct {
	Due  <-chan time.Time
	Tell func(Explored)
}

// Exhaust visits every state that the bounds allow.
func Exhaust(b Bounds, rules *Rules, watch Watch) Explored {
	s := newSearch(b)
	return s.run(rules, watch)
}

func newSearch(b Bounds) *search {
	b.Config.Eager = true
	b.Workers = max(1, b.Workers)
	s := &search{bounds: b, reduced: true}
	s.wake = sync.NewCond(&s.mu)
	return s
}

func (s *search) run(rules *Rules, watch Watch) Explored {
	s.result.Complete = true
	first := newWorker(s)
	first.push(New(s.bounds.Config, rules), newBudget(&s.bounds), nil)
	s.spare = first.stack
	var wg sync.WaitGroup
	for range s.bounds.Workers {
		wg.Go(newWorker(s).work)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return s.told(rules)
		case <-watch.Due:
			watch.Tell(s.explored())
		}
	}
}

func (s *search) explored() Explored {
	s.mu.Lock()
	r := s.result
	s.mu.Unlock()
	r.States, r.Visits, r.Transitions = s.seen.states(), int(s.visits.Load()), int(s.transitions.Load())
	r.Settled, r.Depth = int(s.settled.Load()), int(s.depth.Load())
	return r
}

// told is the result, with a way that can be played again.
func (s *search) told(rules *Rules) Explored {
	r := s.explored()
	if s.reduced {
		r.Events = unfold(&s.bounds, rules, r.Events)
	}
	return r
}

// broken ends the search with the first violation found.
func (s *search) broken(violation string, y *way) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result.Violation == "" {
		s.result.Violation, s.result.Events = violation, y.events()
	}
	s.end()
}

// full ends the search because enough states were seen.
func (s *search) full() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Complete = false
	s.end()
}

func (s *search) end() {
	s.stop.Store(true)
	s.wake.Broadcast()
}

// take waits for a world that another worker can spare. It returns false when no
// worker has any left.
func (s *search) take() (reached, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.Add(1)
	for len(s.spare) == 0 && !s.stop.Load() {
		if s.waits++; s.waits == s.bounds.Workers {
			s.end()
			break
		}
		s.wake.Wait()
		s.waits--
	}
	if s.stop.Load() {
		return reached{}, false
	}
	s.idle.Add(-1)
	r := s.spare[len(s.spare)-1]
	s.spare = s.spare[:len(s.spare)-1]
	return r, true
}

func (s *search) give(r reached) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, r)
	s.wake.Signal()
}
