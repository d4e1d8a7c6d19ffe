package shell

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// happens lets an event happen. Its end may come after all faults have ended.
func (w *world) happens(e event) {
	if !w.troubled() {
		return
	}
	e.node = w.aims(e)
	m, v := w.machines[e.node], w.volumes[e.volume]
	w.tells("FAULT", "%v", e)
	w.hits(m, e)
	later := func(f func()) { time.AfterFunc(e.lasts, func() { w.tells("END", "%v", e); f() }) }
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
		m.agentNow().p.dies()
		later(func() { m.restarts() })
	case guardDies:
		m.guardNow().dies()
		later(func() { m.restarts() })
	case kubeletDies:
		m.kubeletNow().p.dies()
		w.count("kubelets killed")
		later(func() { m.restarts() })
	case controllerDies:
		var c *controller
		w.locked(func() { c = w.controllers[e.nth%len(w.controllers)] })
		if c != nil {
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
	case peersCut:
		flag(&m.peersAway)
	case sanCut:
		later(w.sanCuts(m, e))
	case relogin:
		w.relogins(m, v)
	case targetRestart:
		w.restarts(v)
	case restore:
		w.restores(v, 1+e.nth*2)
	case watchBreaks:
		w.missesAll(e)
	case watchLate:
		w.lateAll(e)
	case podMoves:
		w.moves(v)
	case nodeDeleted:
		w.deletes(m, e)
	default:
		w.plot.adds(e)
	}
}

// aims is the number of the node that an event hits.
func (w *world) aims(e event) int {
	r := one[v1alpha1.Volume](w.api, client.ObjectKey{Name: w.volumes[e.volume].name}).Status.Ownership
	if e.owner && r != nil {
		if at := slices.IndexFunc(w.machines, func(m *machine) bool { return m.name == r.Primary.Node }); at >= 0 {
			return at
		}
	}
	return e.node
}

func (w *world) restarts(v *volume) {
	if v.target == nil {
		return
	}
	_ = v.target.Restart()
	w.count("target restarts")
	for _, m := range w.machines {
		if w.plan.late && m.runs() && !m.cutFrom(toSAN) {
			_ = v.target.Relogin(m.name)
		}
	}
}

// restores brings an older record back, once in a schedule.
func (w *world) restores(v *volume, versions int) {
	if !w.oracle.restored(v) && w.api.restore(v.name, versions) {
		w.count("API restores")
		w.oracle.restores(v)
	}
}

func (w *world) moves(v *volume) {
	pods := w.pods(v)
	if len(pods) > 1 { // the others go on
		d := rolled(w.seed, uint64(time.Since(w.began)), "moves", v.name)
		pods = pods[d.below(len(pods)):][:1]
	}
	for _, p := range pods {
		_ = w.api.remove(nil, p)
	}
	w.count("pods moved")
}

func (w *world) relogins(m *machine, v *volume) {
	if v.target == nil {
		return
	}
	_ = v.target.Relogin(m.name)
	w.count("re-logins")
}

// sanCuts cuts a machine from the storage network, or all of them if the target itself is away, and returns what ends that.
// At one moment all have it in one order, so that a seed has one story.
func (w *world) sanCuts(m *machine, e event) (ends func()) {
	away := []*machine{m}
	if e.nth == 0 {
		away = w.machines
		w.count("targets away")
	}
	each := func(f func(*machine)) func() {
		return func() {
			for _, m := range away {
				f(m)
			}
		}
	}
	each(func(m *machine) { w.locked(func() { m.sanAway = true }) })()
	if e.lasts > waitsForThePath {
		time.AfterFunc(waitsForThePath, each((*machine).shutsDown))
	}
	return each((*machine).sanBack)
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
	if m.guardNow().p.isDead() {
		m.guards()
	}
	if m.agentNow().p.isDead() {
		m.agents()
	}
	if m.kubeletNow().p.isDead() {
		m.kubelets()
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
