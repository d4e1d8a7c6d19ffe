package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// plan is a world, and what goes wrong in it.
type plan struct {
	nodes, controllers, volumes int
	shares, slots               int
	persistent                  bool
	// late: the targets know reservations again only when their nodes log in.
	late bool
	// copies: the volumes are copies in the machines' pools, and not shared disks. loss is the age of the
	// writes that a failover may give up.
	copies bool
	loss   time.Duration
	// together: two pods write each disk at once, on two nodes. known: the target knows a node's next session again.
	together, known bool
	// writers are how many pods write each disk at once, where that is not two.
	writers int
	// calm is how rare single faults of effects are.
	calm int
	// until is when all faults end at the earliest.
	until  time.Duration
	events []event
	// exact: strikes are the single faults, and the dice say of none.
	exact   bool
	strikes []strike
	told    telling
}

// event is something that goes wrong, and ends after a while.
type event struct {
	what      fault
	at, lasts time.Duration
	node      int
	volume    int
	nth       int
	effect    string
	flag      bool
	// owner: it hits the node that owns the volume then, if one does.
	owner bool
}

type fault int

const (
	powerOff fault = iota
	sleep
	agentDies
	guardDies
	controllerDies
	apiDown
	apiSlow
	apiCut
	sanCut
	peersCut
	relogin
	targetRestart
	restore
	watchBreaks
	watchLate
	podMoves
	kubeletDies
	// sleepBefore and sleepAfter are about an effect of a machine, and dieBefore and dieAfter about one of a
	// process.
	sleepBefore
	sleepAfter
	dieBefore
	dieAfter
	faults
	// nodeDeleted is in plans of its own.
	nodeDeleted = faults
)

var faultNames = [faults + 1]string{"power off", "sleep", "agent dies", "guard dies", "controller dies", "API server down", "API server slow",
	"cut from the API server", "cut from the storage network", "cut from the other nodes", "session ends", "target loses power", "record restored",
	"watches break", "watches late", "pod moves", "kubelet dies", "sleep before", "sleep after", "die before", "die after", "Node deleted"}

func (e event) String() string {
	s := faultNames[e.what]
	if e.effect != "" {
		s += fmt.Sprintf(" %s, the %d. time", e.effect, e.nth+1)
	}
	node := string('a' + rune(e.node))
	if e.owner {
		node += " or the owner"
	}
	return s + fmt.Sprintf(" (node %s, volume v%d, %v, %t, %d)", node, e.volume+1, e.lasts.Round(time.Millisecond), e.flag, e.nth)
}

// plotted are the effects around which a plot may come.
var plotted = []string{"Reserve", "Register", "UpdateVolumeStatus", "Store", "Mount", "Bind", "GuardOpen", "GuardClose", "GuardClosed", "Flush", "Unmount",
	"Start", "GetVolume", "Look", "Attach", "Detach", "DeletePod", "PatchNode", "UpdateLease", "GetLease", "ListPod", "Stop"}

const warm = 6 * time.Second

// planOf is the plan of a seed.
func planOf(seed uint64) plan {
	d := rolled(seed, 0, "plan")
	p := plan{
		nodes: 2 + d.below(3), controllers: 2, volumes: 1 + d.below(2), slots: 4, persistent: !d.chance(4),
		calm: []int{1, 4, 20}[d.below(3)],
	}
	p.shares = min(p.nodes, 2+d.below(2))
	span := d.between(20*time.Second, 90*time.Second)
	// A mood makes one fault likely: one that needs two of its kind is hardly ever seen otherwise.
	mood := fault(d.below(int(faults)))
	for range 2 + d.below(7) {
		e := event{
			what: fault(d.below(int(faults))), at: warm + d.upTo(span), node: d.below(p.nodes), volume: d.below(p.volumes),
			nth: d.below(4), flag: d.chance(2), owner: d.chance(2),
		}
		if d.chance(10) {
			e.what = podMoves
		}
		if d.chance(4) {
			e.what = mood
		}
		if e.what >= sleepBefore {
			e.effect = plotted[d.below(len(plotted))]
			if d.chance(3) {
				e.effect, e.nth = "Reserve", 0
			}
		}
		e.lasts = []time.Duration{d.between(200*time.Millisecond, 5*time.Second), d.between(5*time.Second, 30*time.Second), d.between(20*time.Second, 70*time.Second)}[d.below(3)]
		p.events = append(p.events, e)
	}
	p.events = inTime(p.events)
	return p
}

// planOfCopies is the plan of a seed whose volumes are copies. There is no storage network, and no target.
func planOfCopies(seed uint64) plan {
	p := planOf(seed)
	d := rolled(seed, 1, "plan")
	p.copies, p.shares = true, min(p.nodes, 2+d.below(2))
	p.loss = []time.Duration{30 * time.Second, 10 * time.Minute}[d.below(2)]
	for i := range p.events {
		switch e := &p.events[i]; e.what {
		case sanCut, relogin, targetRestart:
			e.what = []fault{podMoves, powerOff, sleep, peersCut}[d.below(4)]
		case sleepBefore, sleepAfter, dieBefore, dieAfter:
			if d.chance(2) {
				e.effect = plottedOfCopies[d.below(len(plottedOfCopies))]
			}
		}
	}
	return p
}

// plottedOfCopies are the effects on copies around which a plot may come.
var plottedOfCopies = []string{"Mark", "Snapshot", "Receive", "Writable", "RollBack", "Preserve", "Drop", "Hold", "Abort", "State"}

func inTime(events []event) []event {
	return slices.SortedFunc(slices.Values(events), func(a, b event) int { return cmp.Compare(a.at, b.at) })
}

func (p *plan) ends() (last time.Duration) {
	for _, e := range p.events {
		last = max(last, e.at+min(e.lasts, 40*time.Second))
	}
	return max(p.until, last+time.Second)
}

func (p *plan) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "nodes=%d controllers=%d volumes=%d shares=%d persistent=%t late=%t calm=%d copies=%t loss=%v together=%t known=%t\n",
		p.nodes, p.controllers, p.volumes, p.shares, p.persistent, p.late, p.calm, p.copies, p.loss, p.together, p.known)
	for _, e := range inTime(p.events) {
		fmt.Fprintf(&s, "%8.3f %v\n", e.at.Seconds(), e)
	}
	for _, x := range p.strikes {
		fmt.Fprintln(&s, x)
	}
	return s.String()
}
