package explore

import (
	"math/rand/v2"

	"berth.dev/berth/internal/ownership"
)

// Steps is how many events a random schedule has.
const Steps = 200

// weights say how often a kind of event is tried. Two thirds are processes at
// work; faults come in storms and calms, or nothing would ever get done.
var weights = [kinds]int{agentSteps: 300, controllerSteps: 90, delivers: 60, loses: 5, appWrites: 90, wants: 26, unwants: 10,
	ticksBy: 60, crashes: 8, boots: 24, powersOff: 3, agentStops: 4, agentStarts: 10, pauses: 8, resumes: 20, cuts: 10, heals: 22, isolates: 3, rejoins: 8,
	apiStops: 3, apiStarts: 9, restores: 3, forgets: 0, wrecks: 2, taints: 5, untaints: 8, approves: 6, factors: 4, attaches: 60, deletesNode: 3, addsNode: 5,
	blips: 8, restartsTarget: 2, presses: 4, relieves: 8, restartsController: 3, deletes: 1, evicts: 12, sends: 30, lands: 20, deafens: 2, hears: 6, expands: 2, fills: 2, drains: 6, cordons: 4, uncordons: 6, clears: 0}

// atDisk are the kinds that happen only to shared disks.
var atDisk = [kinds]bool{attaches: true, blips: true, restartsTarget: true, presses: true, relieves: true, sends: true, lands: true, cordons: true, uncordons: true}

// atCopies are the kinds that happen only to copies.
var atCopies = [kinds]bool{expands: true, fills: true, drains: true}

// storms are the moods of a schedule: the kinds that come more often, with their
// factor; zero means not at all. A fault that needs two others of its kind to do
// harm would hardly ever be seen if all kinds were always equally likely.
var storms = []map[Kind]int{
	{},
	{isolates: 5, heals: 0, ticksBy: 2, restores: 0, wrecks: 0},
	{cuts: 6, heals: 0, ticksBy: 3, deletesNode: 8, restores: 0, wrecks: 0},
	{cuts: 6, heals: 2, ticksBy: 2, restores: 0, wrecks: 0},
	{crashes: 3, boots: 2, powersOff: 3, taints: 3, restores: 0},
	{deafens: 20, hears: 1, cuts: 6, heals: 0, ticksBy: 2, restores: 0, wrecks: 0, crashes: 0, pauses: 0},
	{pauses: 5, resumes: 2, agentStops: 2, restores: 0, wrecks: 0, ticksBy: 2},
	{restores: 8, forgets: 2, wrecks: 0, factors: 3},
	{expands: 8, fills: 4, drains: 1, restores: 6, factors: 3},
	{factors: 8, wrecks: 3, ticksBy: 2, restores: 0, wants: 0},
	{deletes: 6, factors: 3, wants: 2, unwants: 2},
	{wrecks: 4, crashes: 2, loses: 3},
	{cuts: 0, crashes: 0, pauses: 0, wrecks: 0, apiStops: 0, wants: 3, unwants: 3},
	{blips: 5, restartsTarget: 4, presses: 4, pauses: 3, restores: 0},
	{isolates: 6, heals: 0, rejoins: 2, restartsTarget: 6, wants: 2, appWrites: 2, restores: 0, wrecks: 0, crashes: 0},
	{pauses: 5, ticksBy: 2, wants: 2, unwants: 2, controllerSteps: 2, restartsTarget: 3, cuts: 0, restores: 0, wrecks: 0, crashes: 0, apiStops: 0},
}

// lotteries of worlds without and with a shared disk.
var lotteries = [2][][]Kind{drum(false), drum(true)}

func drum(disk bool) (out [][]Kind) {
	for _, storm := range storms {
		var lottery []Kind
		for k, n := range weights {
			if atDisk[k] && !disk || atCopies[k] && disk {
				continue
			}
			if factor, ok := storm[Kind(k)]; ok {
				n *= factor
			}
			for ; n > 0; n-- {
				lottery = append(lottery, Kind(k))
			}
		}
		out = append(out, lottery)
	}
	return out
}

// Source is the dice of one schedule.
type Source struct {
	r     *rand.Rand
	storm int
	// victim is the node of the plot, negative if there is none.
	victim int
}

// NewSource returns the dice of the schedule with the given number.
func NewSource(seed uint64) Source {
	r := rand.New(rand.NewPCG(seed, 0x6265727468))
	return Source{r: r, storm: r.IntN(len(storms)), victim: r.IntN(10) - 6}
}

// Config draws the world of a schedule.
func (s Source) Config() Config {
	c := Config{Kind: ownership.Snapshots, Nodes: 2 + s.r.IntN(3), Watchdog: s.r.IntN(3) > 0, Automatic: s.r.IntN(4) > 0}
	if s.r.IntN(3) == 0 {
		c.Kind = ownership.Attachments
	}
	c.Factor = 2 + s.r.IntN(c.Nodes-1)
	if c.Kind.Traits().Attaches {
		c.Shares = c.Factor + s.r.IntN(c.Nodes-c.Factor+1)
		c.Persistent, c.Yields = s.r.IntN(4) > 0, s.r.IntN(2) > 0
	}
	if c.Kind.Traits().Attaches && s.r.IntN(3) == 0 {
		c.Many, c.Known, c.Persistent, c.Factor, c.Shares = true, s.r.IntN(2) == 0, true, 1, 2+s.r.IntN(c.Nodes-1)
	}
	c.Lasting, c.Partial = s.r.IntN(3) == 0, s.r.IntN(6) == 0
	c.Away = !c.Lasting && s.r.IntN(4) == 0
	return c
}

// Event draws the next event. A node that got something done is likely to go on:
// work comes in bursts, and a decision is mostly carried out at once.
func (s Source) Event(w *World, last Event, worked bool) Event {
	if last.Kind == agentSteps && worked && s.r.IntN(10) > 0 {
		return Event{Kind: agentSteps, A: last.A, B: s.stale()}
	}
	if last.Kind == resumes && worked && s.r.IntN(2) > 0 { // a machine that wakes goes on where it was
		return Event{Kind: [...]Kind{appWrites, agentSteps}[s.r.IntN(2)], A: last.A}
	}
	if e, ok := s.plot(w); ok {
		return e
	}
	e := Event{Kind: s.kind(w)}
	nodes := w.cfg.Nodes
	switch e.Kind {
	case agentSteps:
		e.A, e.B = uint8(s.r.IntN(nodes)), s.stale()
	case controllerSteps:
		e.A, e.B = uint8(s.r.IntN(controllers)), s.stale()
	case approves, restartsController:
		e.A = uint8(s.r.IntN(controllers))
	case delivers, loses:
		e.A, e.B = uint8(s.r.IntN(2)), uint8(s.r.IntN(5)/4)
		if e.Kind == loses {
			e.B = 0
		}
	case ticksBy:
		e.A = [...]uint8{0, 0, 0, 0, 0, 0, 1, 1, 3, 2}[s.r.IntN(10)]
	case cuts, heals:
		e.A, e.B = s.endpoint(nodes), s.endpoint(nodes)
		if s.r.IntN(3) == 0 {
			e.B = api
		}
	case restores:
		e.A = uint8(1 + s.r.IntN(12))
		if s.r.IntN(12) == 0 {
			e = Event{Kind: forgets}
		}
	case deletes: // the rest of the schedule is about what is left
		if s.r.IntN(5) > 0 {
			e = Event{Kind: agentSteps, A: uint8(s.r.IntN(nodes))}
		}
	case restartsTarget:
		if w.cfg.Many && s.r.IntN(2) == 0 {
			e.Kind = clears
		}
	case factors:
		e.A = uint8(1 + s.r.IntN(nodes))
	case wants:
		e.A, e.B = uint8(s.r.IntN(nodes)), uint8(s.r.IntN(6)/5)
	case attaches:
		e.A, e.B = s.fitting(w, attaches), uint8(s.r.IntN(4)/3)
	default:
		if onNode[e.Kind] {
			e.A = s.fitting(w, e.Kind)
		}
	}
	return e
}

// kind draws what happens next.
func (s Source) kind(w *World) Kind {
	lottery := lotteries[0][s.storm]
	if w.cfg.Kind.Traits().Reserves {
		lottery = lotteries[1][s.storm]
	}
	return lottery[s.r.IntN(len(lottery))]
}

// fitting draws a node to which the event can happen, if there is one.
func (s Source) fitting(w *World, k Kind) uint8 {
	at := s.r.IntN(w.cfg.Nodes)
	for i := 0; i < w.cfg.Nodes; i++ {
		j := (at + i) % w.cfg.Nodes
		n := &w.nodes[j]
		fits := true
		switch k {
		case appWrites, sends:
			fits = n.mounted
		case lands:
			fits = !n.late.IsZero()
		case unwants:
			fits = n.wanted
		case evicts:
			fits = n.served && !n.mounted
		case boots, taints:
			fits = !n.up
		case resumes:
			fits = n.paused
		case agentStarts:
			fits = n.up && !n.agent
		case hears:
			fits = n.deaf
		case untaints:
			fits = n.tainted
		case drains:
			fits = n.full
		case uncordons:
			fits = n.cordoned
		case addsNode:
			fits = n.deleted
		case attaches:
			fits = w.disk.links[j] == ownership.Attaching
		}
		if fits {
			return uint8(j)
		}
	}
	return uint8(at)
}

func (s Source) stale() uint8 {
	if s.r.IntN(6) > 0 {
		return 0
	}
	return uint8(s.r.IntN(64))
}

func (s Source) endpoint(nodes int) uint8 {
	i := s.r.IntN(nodes + controllers + 1)
	if i >= nodes {
		i += maxNodes - nodes
	}
	return uint8(i)
}

// Outcome is the result of a schedule.
type Outcome struct {
	Config    Config
	Events    []Event
	Violation string
	World     *World
}

// Random plays the schedule with the given number and then, with all faults
// over, waits for the world to come to rest.
func Random(seed uint64, rules *Rules, events []Event) Outcome {
	s := NewSource(seed)
	w := New(s.Config(), rules)
	events = events[:0]
	var last Event
	worked := false
	for len(events) < Steps && w.Violation == "" {
		last = s.Event(w, last, worked)
		worked = w.Apply(last)
		events = append(events, last)
	}
	w.rest()
	return Outcome{Config: w.cfg, Events: events, Violation: w.Violation, World: w}
}

// Replay plays a given schedule the same way.
func Replay(cfg Config, rules *Rules, events []Event, story *Story) *World {
	w := New(cfg, rules)
	w.story, w.verbose = story, story.detailed()
	for _, e := range events {
		if w.Violation != "" {
			break
		}
		story.begin(e)
		w.Apply(e)
	}
	w.rest()
	return w
}

// rest ends a schedule: one fault lasts for a while, or none.
func (w *World) rest() {
	if w.cfg.Lasting {
		w.Endure()
	}
	if w.cfg.Away {
		w.EndureAway()
	}
	w.Settle()
}
