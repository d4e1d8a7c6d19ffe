package explore

// Bounds limit an exhaustive exploration. Processes may always take a step;
// what happens to them is counted.
type Bounds struct {
	Config Config
	// How often each may happen in one history.
	Writes, Wants, Crashes, PowerOffs, Pauses, Cuts, Wrecks, Restores, Factors, Losses, Repeats, Ticks int
	// Controllers is how many take part.
	Controllers int
	// SettleEvery is how rarely a state is also asked to come to rest: one in so many.
	SettleEvery uint64
	// MaxStates ends the exploration early; zero means never.
	MaxStates int
}

// Explored is what an exhaustive exploration saw.
type Explored struct {
	States, Transitions, Settled, Depth int
	// Complete: every state within the bounds was seen.
	Complete  bool
	Violation string
	Events    []Event
}

// budget is what may still happen on the way to a state.
type budget [kinds]int8

type search struct {
	bounds  Bounds
	seen    map[[2]uint64]struct{}
	enc     encoder
	path    []Event
	result  Explored
	options [][]Event // by depth, to reuse memory
}

// Exhaust visits every state that the bounds allow, depth first.
func Exhaust(b Bounds, rules *Rules) Explored {
	s := &search{bounds: b, seen: map[[2]uint64]struct{}{}}
	left := budget{appWrites: int8(b.Writes), wants: int8(b.Wants), crashes: int8(b.Crashes), powersOff: int8(b.PowerOffs),
		pauses: int8(b.Pauses), cuts: int8(b.Cuts), wrecks: int8(b.Wrecks), restores: int8(b.Restores), factors: int8(b.Factors),
		loses: int8(b.Losses), delivers: int8(b.Repeats), ticksBy: int8(b.Ticks)}
	b.Config.Eager = true
	s.result.Complete = true
	s.visit(New(b.Config, rules), left)
	s.result.States = len(s.seen)
	return s.result
}

func (s *search) visit(w *World, left budget) {
	s.enc.b = s.enc.b[:0]
	key := w.key(&s.enc, s.bounds.Restores > 0)
	for i, n := range left {
		key[0] = (key[0] ^ uint64(n)<<(i%8)) * 1099511628211
	}
	if _, ok := s.seen[key]; ok {
		return
	}
	if s.bounds.MaxStates > 0 && len(s.seen) >= s.bounds.MaxStates {
		s.result.Complete = false
		return
	}
	s.seen[key] = struct{}{}
	s.result.Depth = max(s.result.Depth, len(s.path))
	if s.settles(w, key[1]) {
		return
	}
	depth := len(s.path)
	if depth == len(s.options) {
		s.options = append(s.options, nil)
	}
	events := s.successors(w, &left, s.options[depth][:0])
	s.options[depth] = events
	for _, e := range events {
		if s.step(w, left, e); s.result.Violation != "" {
			return
		}
	}
}

func (s *search) step(w *World, left budget, e Event) {
	next := *w
	if !next.Apply(e) && next.Violation == "" && e.Kind != agentSteps && e.Kind != controllerSteps {
		return
	}
	s.result.Transitions++
	s.path = append(s.path, e)
	if next.Violation != "" {
		s.result.Violation, s.result.Events = next.Violation, append([]Event(nil), s.path...)
		return
	}
	if bounded(e) {
		left[e.Kind]--
	}
	s.visit(&next, left)
	s.path = s.path[:len(s.path)-1]
}

// settles asks some of the states whether they come to rest.
func (s *search) settles(w *World, key uint64) bool {
	if s.bounds.SettleEvery == 0 || key%s.bounds.SettleEvery != 0 {
		return false
	}
	rest := *w
	rest.Settle()
	s.result.Settled++
	if rest.Violation == "" {
		return false
	}
	s.result.Violation, s.result.Events = rest.Violation, append([]Event(nil), s.path...)
	return true
}

// bounded tells whether the event is counted. Work is not, nor is the end of a fault.
func bounded(e Event) bool {
	switch e.Kind {
	case agentSteps, controllerSteps, boots, resumes, heals, attaches, unwants:
		return false
	case delivers:
		return e.B != 0
	}
	return true
}

// successors lists what may happen next.
func (s *search) successors(w *World, left *budget, out []Event) []Event {
	add := func(k Kind, a, b int) { out = append(out, Event{Kind: k, A: uint8(a), B: uint8(b)}) }
	for c := 0; c < s.bounds.Controllers; c++ {
		add(controllerSteps, c, 0)
	}
	for k := range w.streams {
		add(delivers, k, 0)
		if left[delivers] > 0 {
			add(delivers, k, 1)
		}
		if left[loses] > 0 {
			add(loses, k, 0)
		}
	}
	for i := 0; i < w.cfg.Nodes; i++ {
		add(agentSteps, i, 0)
		for _, k := range [...]Kind{boots, resumes, attaches} {
			add(k, i, 0)
		}
		for _, k := range [...]Kind{appWrites, wants, crashes, powersOff, pauses, wrecks} {
			if left[k] > 0 {
				add(k, i, 0)
			}
		}
		if left[cuts] > 0 {
			add(cuts, i, api)
			for j := i + 1; j < w.cfg.Nodes; j++ {
				add(cuts, i, j)
			}
		}
	}
	if left[restores] > 0 {
		for back := 1; back <= 6; back++ {
			add(restores, back, 0)
		}
	}
	for f := 1; left[factors] > 0 && f <= w.cfg.Nodes; f++ {
		add(factors, f, 0)
	}
	if left[ticksBy] > 0 {
		add(ticksBy, 1, 0)
		add(ticksBy, 2, 0)
	}
	return out
}
