package explore

// Bounds limit an exhaustive exploration. Processes may always take a step; the
// events that happen to them are counted.
type Bounds struct {
	Config Config
	// How often each may happen in one history. Outages are crashes or power-offs,
	// in any mixture; Crashes and PowerOffs are then not counted by themselves.
	Writes, Wants, Outages, Crashes, PowerOffs, Pauses, Cuts, Wrecks, Restores, Factors, Losses, Repeats, Ticks, Approvals int
	// Prompt: decisions are carried out at once, except for Delays of them, for
	// which anything may happen in between. If not set, each may be delayed.
	Prompt bool
	Delays int
	// Controllers is how many take part.
	Controllers int
	// SettleEvery: one in so many states is also brought to rest.
	SettleEvery uint64
	// MaxStates ends the exploration early; zero means never.
	MaxStates int
	// Workers is how many explore at once; zero means one.
	Workers int
}

// Explored is the result of an exhaustive exploration.
type Explored struct {
	// States counts the worlds that no renaming makes equal, whatever may still
	// happen to them. Visits counts how often the search went on from one: again if
	// it was reached with more still to happen.
	States, Visits, Transitions, Settled, Depth int
	// Complete: every state within the bounds was seen.
	Complete  bool
	Violation string
	Events    []Event
}

// budget is how often each counted kind of event may still happen: four bits for
// each kind, so that one operation compares two budgets.
type budget uint64

// counted are the kinds with a place in a budget.
var counted = [...]Kind{appWrites, wants, crashes, powersOff, pauses, cuts, wrecks, restores, factors, loses, delivers, ticksBy, agentSteps, approves}

// delays is the kind under which a delayed decision is counted.
const delays = agentSteps

// tops are the highest bits of all places. They stay clear: nothing happens more than seven times.
const tops budget = 0x88888888888888

func newBudget(b *Bounds) (left budget) {
	crash, cut := b.Crashes, b.PowerOffs
	if b.Outages > 0 {
		crash, cut = b.Outages, 0
	}
	for i, n := range [len(counted)]int{b.Writes, b.Wants, crash, cut, b.Pauses, b.Cuts, b.Wrecks, b.Restores, b.Factors, b.Losses, b.Repeats, b.Ticks, b.Delays, b.Approvals} {
		if n > 7 {
			panic("bounds allow something more than seven times")
		}
		left |= budget(n) << (4 * i)
	}
	return left
}

// covers tells whether everything that o allows is allowed by l.
func (l budget) covers(o budget) bool { return (l|tops-o)&tops == tops }

func (l budget) allows(k Kind) bool { return l>>place(k)&7 > 0 }

func place(k Kind) int {
	for i, o := range counted {
		if o == k {
			return 4 * i
		}
	}
	return -1
}

// outage is the kind under which a power-off is counted.
func (b *Bounds) outage() Kind {
	if b.Outages > 0 {
		return crashes
	}
	return powersOff
}

// spend takes the event off the budget. A step of a process counts only if its
// decision waits. The end of a fault does not count.
func (b *Bounds) spend(left budget, e Event, waits bool) budget {
	k := e.Kind
	switch k {
	case boots, resumes, heals, attaches, unwants, evicts:
		return left
	case agentSteps, controllerSteps:
		if !b.Prompt || !waits {
			return left
		}
		k = delays
	case delivers:
		if e.B == 0 {
			return left
		}
	case powersOff:
		k = b.outage()
	}
	return left - 1<<place(k)
}

// successors lists the events that may happen next, the counted ones first: the
// search takes the last one, and so goes through all free events before it spends
// the budget.
func (b *Bounds) successors(w *World, left budget, out []Event) []Event {
	add := func(k Kind, a, b int) { out = append(out, Event{Kind: k, A: uint8(a), B: uint8(b)}) }
	out = b.counted(w, left, out)
	for i := 0; i < w.cfg.Nodes; i++ {
		for _, k := range [...]Kind{boots, resumes, attaches, evicts} {
			add(k, i, 0)
		}
		if w.cfg.Many {
			add(unwants, i, 0) // a pod elsewhere does not end this one
		}
	}
	for k := range w.streams {
		add(delivers, k, 0)
	}
	how := 0
	if b.Prompt {
		how = atOnce
	}
	for c := 0; c < b.Controllers; c++ {
		add(controllerSteps, c, how)
	}
	for i := 0; i < w.cfg.Nodes; i++ {
		add(agentSteps, i, how)
	}
	return out
}

// counted lists the events that the budget still allows.
func (b *Bounds) counted(w *World, left budget, out []Event) []Event {
	add := func(k Kind, a, b int) {
		out = append(out, Event{Kind: k, A: uint8(a), B: uint8(b)})
	}
	if left.allows(restores) {
		for back := 1; back <= 6; back++ {
			add(restores, back, 0)
		}
	}
	for f := 1; left.allows(factors) && f <= w.cfg.Nodes; f++ {
		add(factors, f, 0)
	}
	if left.allows(approves) {
		add(approves, 0, 0)
	}
	if left.allows(ticksBy) {
		add(ticksBy, 1, 0)
		add(ticksBy, 2, 0)
	}
	for k := range w.streams {
		if left.allows(delivers) {
			add(delivers, k, 1)
		}
		if left.allows(loses) {
			add(loses, k, 0)
		}
	}
	for i := 0; i < w.cfg.Nodes; i++ {
		for _, k := range [...]Kind{wrecks, pauses, crashes, wants, appWrites} {
			if left.allows(k) {
				add(k, i, 0)
			}
		}
		if left.allows(b.outage()) {
			add(powersOff, i, 0)
		}
		if left.allows(cuts) {
			add(cuts, i, api)
			for j := i + 1; j < w.cfg.Nodes; j++ {
				add(cuts, i, j)
			}
		}
	}
	return out
}

// horizon says what may happen within these bounds.
func (b *Bounds) horizon() horizon {
	return horizon{backups: b.Restores+b.Wrecks+b.Factors > 0, restore: b.Restores > 0, time: b.Ticks > 0, renames: b.interchangeable(),
		newest: uint64(1 + b.Writes)} // each snapshot but the first holds a write that the one before does not
}

// interchangeable tells whether the nodes may be exchanged. They may not where a
// rule takes the first by name among equals: those that choose a victim, a writer or a place
// for a replica, or a standby for a fence out of two.
func (b *Bounds) interchangeable() bool {
	c := &b.Config
	return b.Factors == 0 && !c.Many && c.Factor == c.Nodes && b.Restores == 0 && (c.Kind.Traits().Data || c.Nodes == 2 && b.Ticks == 0)
}
