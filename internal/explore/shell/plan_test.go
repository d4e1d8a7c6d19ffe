package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// plan is a world, and what goes wrong in it.
type plan struct {
	nodes, controllers, volumes int
	shares, slots               int
	persistent                  bool
	// calm is how rare single faults of effects are.
	calm    int
	events  []event
	verbose bool
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
	// sleepBefore and sleepAfter are about an effect of a machine, and dieBefore and dieAfter about one of a
	// process.
	sleepBefore
	sleepAfter
	dieBefore
	dieAfter
	faults
)

var faultNames = [faults]string{"power off", "sleep", "agent dies", "guard dies", "controller dies", "API server down", "API server slow",
	"cut from the API server", "cut from the storage network", "cut from the other nodes", "session ends", "target loses power", "record restored",
	"watches break", "watches late", "pod moves", "sleep before", "sleep after", "die before", "die after"}

func (e event) String() string {
	s := fmt.Sprintf("%7.3f  %s", e.at.Seconds(), faultNames[e.what])
	if e.effect != "" {
		s += fmt.Sprintf(" %s, the %d. time", e.effect, e.nth+1)
	}
	return s + fmt.Sprintf(" (node %c, volume %d, %v, %v)", 'a'+rune(e.node), e.volume+1, e.lasts.Round(time.Millisecond), e.flag)
}

// plotted are the effects around which a plot may come.
var plotted = []string{"Reserve", "Register", "UpdateVolumeStatus", "Store", "Mount", "Bind", "GuardOpen", "GuardClose", "GuardClosed", "Flush", "Unstage",
	"Unmount", "GetVolume", "Look", "Attach", "Detach", "DeletePod", "PatchNode", "UpdateLease", "GetLease", "ListPod", "Stop"}

const warm = 6 * time.Second

// planOf is the plan of a seed.
func planOf(seed uint64) plan {
	d := rolled(seed, "plan", 0)
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
			nth: d.below(4), flag: d.chance(2), effect: "",
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
	slices.SortFunc(p.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return p
}

func (p *plan) ends() (last time.Duration) {
	for _, e := range p.events {
		last = max(last, e.at+min(e.lasts, 40*time.Second))
	}
	return last + time.Second
}

func (p *plan) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "nodes=%d volumes=%d shares=%d persistent=%t calm=%d\n", p.nodes, p.volumes, p.shares, p.persistent, p.calm)
	for _, e := range p.events {
		fmt.Fprintln(&s, e)
	}
	return s.String()
}

// happens lets an event happen. Its end may come after all faults have ended.
func (w *world) happens(e event) {
	if !w.troubled() {
		return
	}
	w.tells("EVENT %v", e)
	m, v := w.machines[e.node], w.volumes[e.volume]
	later := func(f func()) { time.AfterFunc(e.lasts, func() { w.tells("END %v", e); f() }) }
	flag := func(set *bool) {
		w.locked(func() { *set = true })
		later(func() { w.locked(func() { *set = false }) })
	}
	switch e.what {
	case powerOff:
		w.blackout(m, e)
	case sleep:
		m.sleeps(e.flag && e.nth == 0)
		later(m.wakes)
	case agentDies:
		m.agent.p.dies()
		later(func() { m.restarts() })
	case guardDies:
		m.guard.dies()
		later(func() { m.restarts() })
	case controllerDies:
		if c := w.controllers[e.nth%len(w.controllers)]; c != nil {
			c.p.dies()
			w.count("controllers killed")
		}
	case apiDown:
		w.api.down.Store(true)
		later(func() { w.api.down.Store(false) })
	case apiSlow:
		w.locked(func() { w.slow = min(e.lasts/2, 20*time.Second) })
		later(func() { w.locked(func() { w.slow = 0 }) })
	case apiCut:
		flag(&m.apiAway)
	case sanCut:
		w.locked(func() { m.sanAway = true })
		later(m.sanBack)
	case peersCut:
		flag(&m.peersAway)
	case relogin:
		w.relogins(m, v)
	case targetRestart:
		_ = v.target.Restart()
		w.count("target restarts")
	case restore:
		if !w.oracle.restored(v) && w.api.restore(v.name, 1+e.nth*2) {
			w.count("API restores")
			w.oracle.restores(v)
		}
	case watchBreaks:
		w.missesAll(e)
	case watchLate:
		w.lateAll(e)
	case podMoves:
		w.moves(v)
	default:
		w.plot.adds(e)
	}
}

func (w *world) moves(v *volume) {
	for _, p := range w.pods(v) {
		_ = w.api.remove(p)
	}
	w.count("pods moved")
}

func (w *world) relogins(m *machine, v *volume) {
	_ = v.target.Relogin(m.name)
	w.count("re-logins")
}

// sanBack ends a cut of the storage network. Sessions have ended meanwhile.
func (m *machine) sanBack() {
	was := false
	m.w.locked(func() { was, m.sanAway = m.sanAway, false })
	if was {
		for _, v := range m.w.volumes {
			m.w.relogins(m, v)
		}
	}
}

// blackout lets a machine lose its power. A power system says so, or an administrator, or neither.
func (w *world) blackout(m *machine, e event) {
	boot := m.bootID()
	m.powersOff()
	w.count("machines off")
	says := e.nth
	time.AfterFunc(3*time.Second, func() {
		if m.up.Load() {
			return
		}
		switch says {
		case 0:
			m.annotates(func(n *corev1.Node) {
				metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.PoweredOffAnnotation,
					`{"machine":"machine-of-`+m.name+`","boot":"`+boot+`","since":"2026-01-01T00:00:00Z"}`)
			})
		case 1:
			m.tainted.Store(true)
			m.annotates(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			})
		}
	})
	time.AfterFunc(max(e.lasts, 4*time.Second), func() { w.boots(m) })
}

// boots switches a machine on. The taint has to come off before that.
func (w *world) boots(m *machine) {
	if m.up.Load() || w.over() {
		return
	}
	if m.tainted.Load() {
		m.annotates(func(n *corev1.Node) { n.Spec.Taints = nil })
		m.tainted.Store(false)
	}
	m.powersOn()
}

// dies ends the guard. The kernel feeds the watchdog once more.
func (s *sentry) dies() {
	s.p.dies()
	s.m.w.locked(func() {
		if s.opened && s.m.armed {
			s.m.feeds(s.m.within)
		}
	})
}

// restarts begins what has died on a machine that runs.
func (m *machine) restarts() {
	if !m.up.Load() || m.w.over() {
		return
	}
	if m.guard.p.isDead() {
		m.guards()
	}
	if m.agent.p.isDead() {
		m.agents()
	}
}

func (w *world) informersOf(e event) (all []*informer) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	for _, i := range w.api.informers {
		if i.p.m == w.machines[e.node] && !i.p.isDead() {
			all = append(all, i)
		}
	}
	return all
}

// missesAll breaks the watches of a machine's processes.
func (w *world) missesAll(e event) {
	for _, i := range w.informersOf(e) {
		i.misses()
	}
	w.api.mu.Lock()
	watchers := slices.Clone(w.api.watchers)
	w.api.mu.Unlock()
	for _, x := range watchers {
		if x.p.m == w.machines[e.node] {
			x.mu.Lock()
			x.breaks(e.lasts / 4)
			x.mu.Unlock()
		}
	}
}

func (w *world) lateAll(e event) {
	for _, i := range w.informersOf(e) {
		i.late(e.lasts)
	}
	if !e.flag {
		return
	}
	w.api.mu.Lock()
	watchers := slices.Clone(w.api.watchers)
	w.api.mu.Unlock()
	for _, x := range watchers {
		if x.p.m == w.machines[e.node] {
			x.late(e.lasts)
		}
	}
}
