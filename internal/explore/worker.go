package explore

import "berth.dev/berth/internal/ownership"

// worker explores for a search with memory of its own.
type worker struct {
	s       *search
	canon   canon
	scratch scratch
	stack   []reached
	events  []Event
	next    World // the one at hand, kept off the heap
}

func newWorker(s *search) *worker {
	return &worker{s: s, canon: canon{ahead: s.bounds.horizon()}}
}

func (k *worker) work() {
	for {
		r, ok := k.s.take()
		if !ok {
			return
		}
		k.stack = append(k.stack, r) // the worker that gave it has visited it
		for len(k.stack) > 0 && !k.s.stop.Load() {
			top := len(k.stack) - 1
			r := k.stack[top]
			k.stack[top] = reached{}
			k.stack = k.stack[:top]
			k.expand(&r)
			if len(k.stack) > 1 && k.s.idle.Load() > 0 {
				k.s.give(k.stack[0])
				k.stack = k.stack[1:]
			}
		}
	}
}

// expand applies to a world every event that may happen to it.
func (k *worker) expand(r *reached) {
	k.events = k.s.bounds.successors(&r.w, r.left, k.events[:0])
	for i := 0; i < len(k.events); i++ {
		e := k.events[i]
		next := &k.next
		*next = r.w
		next.scratch = &k.scratch
		if !next.Apply(e) && next.Violation == "" && !quiet(&r.w, next, e) {
			continue
		}
		k.s.transitions.Add(1)
		waits := deciding(&r.w, e) == nil && deciding(next, e) != nil
		left, y := k.s.bounds.spend(r.left, e, waits), r.way.then(e)
		if next.Violation != "" {
			k.s.broken(next.Violation, y)
			return
		}
		k.variants(r, next, e)
		k.push(next, left, y)
	}
}

// deciding is the decision that the process of the event has made and not yet
// carried out.
func deciding(w *World, e Event) *pending {
	switch e.Kind {
	case agentSteps:
		return w.nodes[e.A].pending
	case controllerSteps:
		return w.ctl[e.A].pending
	}
	return nil
}

// variants adds other ways in which the same step could go: its effect may come
// later, and it may choose another source among equals.
func (k *worker) variants(r *reached, next *World, e Event) {
	if again, ok := tied(next, e); ok {
		k.events = append(k.events, again)
	}
	if e.B&atOnce != 0 && deciding(&r.w, e) == nil && r.left.allows(delays) {
		e.B &^= atOnce
		k.events = append(k.events, e)
	}
}

// quiet tells whether a step that got nothing done changed something all the same:
// an answer to the kubelet, or the holds of peers for a node that leaves.
func quiet(w, next *World, e Event) bool {
	i := int(e.A)
	return e.Kind == agentSteps && (w.nodes[i].stopped != next.nodes[i].stopped || w.agents().leaving(i, w.server.current.volume))
}

// tied tells whether a step chose between sources that differ in load alone, and
// gives the step in which the other is less loaded.
func tied(next *World, e Event) (Event, bool) {
	if e.Kind != agentSteps || e.B&backwards != 0 || next.cfg.Nodes < 3 {
		return e, false
	}
	e.B |= backwards
	return e, next.scratch.verb == ownership.Pull
}

func (k *worker) key(w *World) [2]uint64 {
	if k.s.key != nil {
		return k.s.key(w)
	}
	return k.canon.key(w)
}

// push visits a world that has been reached, unless it has been before.
func (k *worker) push(w *World, left budget, y *way) {
	s := k.s
	if s.stop.Load() {
		return
	}
	if s.reduced {
		w.reduce(&k.canon.ahead, nil)
		if w.Violation != "" {
			s.broken(w.Violation, y)
			return
		}
	}
	key := k.key(w)
	enter, fresh := s.seen.enter(key, left)
	if !enter {
		return
	}
	visits := s.visits.Add(1)
	if y != nil && int64(y.length) > s.depth.Load() {
		s.depth.Store(int64(y.length))
	}
	if fresh && s.bounds.SettleEvery != 0 && key[1]%s.bounds.SettleEvery == 0 && k.settle(w, y) {
		return
	}
	if s.bounds.MaxStates > 0 && visits >= int64(s.bounds.MaxStates) {
		s.full()
		return
	}
	k.stack = append(k.stack, reached{w: *w, left: left, way: y})
}

// settle asks whether the world comes to rest, and tells whether it is broken.
func (k *worker) settle(w *World, y *way) bool {
	rest := *w
	rest.scratch = &k.scratch
	for c := range rest.ctl {
		rest.ctl[c].blocked = w.ctl[c].blocked
	}
	rest.Settle()
	k.s.settled.Add(1)
	if rest.Violation != "" {
		k.s.broken(rest.Violation, y)
	}
	return rest.Violation != ""
}
