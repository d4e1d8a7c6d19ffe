package explore

// Bounds limit an exhaustive exploration. Processes may always take a step;
// what happens to them is counted.
type Bounds struct {
	Config Config
	// How often each may happen in one history. Outages are crashes or power-offs,
	// in any mixture; Crashes and PowerOffs are then not counted by themselves.
	Writes, Wants, Outages, Crashes, PowerOffs, Pauses, Cuts, Wrecks, Restores, Factors, Losses, Repeats, Ticks int
	// Prompt: what is decided is carried out at once, but for Delays decisions, for
	// which anything may happen in between. If not, each may be delayed.
	Prompt bool
	Delays int
	// Controllers is how many take part.
	Controllers int
	// SettleEvery is how rarely a state is also asked to come to rest: one in so many.
	SettleEvery uint64
	// MaxStates ends the exploration early; zero means never.
	MaxStates int
	// Workers is how many explore at once; zero means one.
	Workers int
}

// Explored is what an exhaustive exploration saw.
type Explored struct {
	// States are the worlds that no renaming makes equal, whatever may still
	// happen to them. Visits is how often one was gone on from: again if it was
	// reached with more still to happen.
	States, Visits, Transitions, Settled, Depth int
	// Complete: every state within the bounds was seen.
	Complete  bool
	Violation string
	Events    []Event
}

// budget is what may still happen on the way to a state: four bits for each
// kind that is counted, so that two compare at once.
type budget uint64

// counted are the kinds with a place in a budget.
var counted = [...]Kind{appWrites, wants, crashes, powersOff, pauses, cuts, wrecks, restores, factors, loses, delivers, ticksBy, agentSteps}

// delays is the kind as which a decision that waits is counted.
const delays = agentSteps

// tops are the highest bits of all places. They stay clear: nothing happens more than seven times.
const tops budget = 0x8888888888888

func newBudget(b *Bounds) (left budget) {
	crash, cut := b.Crashes, b.PowerOffs
	if b.Outages > 0 {
		crash, cut = b.Outages, 0
	}
	for i, n := range [len(counted)]int{b.Writes, b.Wants, crash, cut, b.Pauses, b.Cuts, b.Wrecks, b.Restores, b.Factors, b.Losses, b.Repeats, b.Ticks, b.Delays} {
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

// outage is what a power-off is counted as.
func (b *Bounds) outage() Kind {
	if b.Outages > 0 {
		return crashes
	}
	return powersOff
}

// spend takes the event off the budget. Work is not counted, unless it waits, nor
// is the end of a fault.
func (b *Bounds) spend(left budget, e Event, waits bool) budget {
	k := e.Kind
	switch k {
	case boots, resumes, heals, attaches, unwants:
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

// successors lists what may happen next: what is counted first, so that a search
// that takes the last goes through all that costs nothing before it pays.
func (b *Bounds) successors(w *World, left budget, out []Event) []Event {
	add := func(k Kind, a, b int) { out = append(out, Event{Kind: k, A: uint8(a), B: uint8(b)}) }
	out = b.counted(w, left, out)
	for i := 0; i < w.cfg.Nodes; i++ {
		for _, k := range [...]Kind{boots, resumes, attaches} {
			add(k, i, 0)
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

// horizon is what these bounds let happen.
func (b *Bounds) horizon() horizon {
	return horizon{backups: b.Restores+b.Wrecks+b.Factors > 0, restore: b.Restores > 0, time: b.Ticks > 0, renames: b.interchangeable(),
		newest: uint64(1 + b.Writes)} // each snapshot but the first holds a write that the one before does not
}

// interchangeable tells whether the nodes are: where one rule or another takes
// the first by name among equals, they are not. Those rules choose a victim or a
// place for a replica, or a standby for a fence out of two.
func (b *Bounds) interchangeable() bool {
	c := &b.Config
	return b.Factors == 0 && c.Factor == c.Nodes && b.Restores == 0 && (c.Kind.Traits().Data || c.Nodes == 2 && b.Ticks == 0)
}
