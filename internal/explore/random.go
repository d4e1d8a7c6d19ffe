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
	apiStops: 3, apiStarts: 9, restores: 3, forgets: 0, wrecks: 2, taints: 5, untaints: 8, approves: 6, factors: 4, attaches: 12, deletesNode: 3, addsNode: 5}

// storms are the moods of a schedule: the kinds that come more often, with their
// factor; zero means not at all. A fault that needs two others of its kind to do
// harm would hardly ever be seen if all kinds were always equally likely.
var storms = []map[Kind]int{
	{},
	{isolates: 5, heals: 0, ticksBy: 2, restores: 0, wrecks: 0},
	{cuts: 6, heals: 0, ticksBy: 3, deletesNode: 8, restores: 0, wrecks: 0},
	{cuts: 6, heals: 2, ticksBy: 2, restores: 0, wrecks: 0},
	{crashes: 3, boots: 2, powersOff: 3, taints: 3, restores: 0},
	{pauses: 5, resumes: 2, agentStops: 2, restores: 0, wrecks: 0, ticksBy: 2},
	{restores: 8, forgets: 2, wrecks: 0, factors: 3},
	{factors: 8, wrecks: 3, ticksBy: 2, restores: 0, wants: 0},
	{wrecks: 4, crashes: 2, loses: 3},
	{cuts: 0, crashes: 0, pauses: 0, wrecks: 0, apiStops: 0, wants: 3, unwants: 3},
}

var lotteries = func() (out [][]Kind) {
	for _, storm := range storms {
		var lottery []Kind
		for k, n := range weights {
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
}()

// Source is the dice of one schedule.
type Source struct {
	r       *rand.Rand
	lottery []Kind
}

// NewSource returns the dice of the schedule with the given number.
func NewSource(seed uint64) Source {
	r := rand.New(rand.NewPCG(seed, 0x6265727468))
	return Source{r: r, lottery: lotteries[r.IntN(len(lotteries))]}
}

// Config draws the world of a schedule.
func (s Source) Config() Config {
	c := Config{Kind: ownership.Snapshots, Nodes: 2 + s.r.IntN(3), Watchdog: s.r.IntN(3) > 0, Automatic: s.r.IntN(4) > 0}
	if s.r.IntN(4) == 0 {
		c.Kind = ownership.Attachments
	}
	c.Factor = 2 + s.r.IntN(c.Nodes-1)
	return c
}

// Event draws the next event. A node that got something done is likely to go on:
// work comes in bursts, and a decision is mostly carried out at once.
func (s Source) Event(w *World, last Event, worked bool) Event {
	if last.Kind == agentSteps && worked && s.r.IntN(10) > 0 {
		return Event{Kind: agentSteps, A: last.A, B: s.stale()}
	}
	e := Event{Kind: s.lottery[s.r.IntN(len(s.lottery))]}
	nodes := w.cfg.Nodes
	switch e.Kind {
	case agentSteps:
		e.A, e.B = uint8(s.r.IntN(nodes)), s.stale()
	case controllerSteps:
		e.A, e.B = uint8(s.r.IntN(controllers)), s.stale()
	case approves:
		e.A = uint8(s.r.IntN(controllers))
	case delivers, loses:
		e.A, e.B = uint8(s.r.IntN(2)), uint8(s.r.IntN(5)/4)
		if e.Kind == loses {
			e.B = 0
		}
	case ticksBy:
		e.A = [...]uint8{0, 0, 0, 0, 0, 0, 1, 1, 1, 2}[s.r.IntN(10)]
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
	case factors:
		e.A = uint8(1 + s.r.IntN(nodes))
	case wants:
		e.A, e.B = uint8(s.r.IntN(nodes)), uint8(s.r.IntN(6)/5)
	default:
		if onNode[e.Kind] {
			e.A = s.fitting(w, e.Kind)
		}
	}
	return e
}

// fitting draws a node to which the event can happen, if there is one.
func (s Source) fitting(w *World, k Kind) uint8 {
	at := s.r.IntN(w.cfg.Nodes)
	for i := 0; i < w.cfg.Nodes; i++ {
		j := (at + i) % w.cfg.Nodes
		n := &w.nodes[j]
		fits := true
		switch k {
		case appWrites:
			fits = n.mounted
		case unwants:
			fits = n.wanted
		case boots, taints:
			fits = !n.up
		case resumes:
			fits = n.paused
		case agentStarts:
			fits = n.up && !n.agent
		case untaints:
			fits = n.tainted
		case addsNode:
			fits = n.deleted
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
	w.Settle()
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
	w.Settle()
	return w
}
