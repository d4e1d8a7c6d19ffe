package oversight

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

const (
	tick      = 250 * time.Millisecond
	answersIn = 4 * time.Second // how long a guard waits for an answer
)

// machine is a node in truth: its guard, its kubelet, its agent and its pod.
type machine struct {
	s    *sim
	name string
	up   bool
	boot int
	// holds: the agent has opened epoch and has not closed it, so it may write.
	epoch lineage.Epoch
	holds bool
	// closed is the newest epoch that it gave up.
	closed lineage.Epoch
	pod    string
	pods   int
	// decided is an action that the agent is about to carry out.
	decided func()

	cut, deaf bool // from the API server; the answers to its renewals are lost
	cutFrom   map[string]bool
	offset    time.Duration // of its boot clock
	version   int           // of its lease that the guard last knew, 0 if it must read
	heard     time.Duration // when the last renewal that was answered was sent
	tried     time.Duration
	beaten    time.Duration // when agent and kubelet renewed
	late      time.Duration // since when the rules tell it to stop
	calls     []*call
}

// call is a renewal on its way.
type call struct {
	sent, stores, answers time.Duration
	base, stored          int
	done, ended           bool
	lease                 *coordinationv1.Lease
}

func (m *machine) clock() time.Duration { return time.Since(m.s.began) }

func (m *machine) bootID() string { return fmt.Sprint("boot-", m.boot) }

// lives lets a quarter of a second pass.
func (m *machine) lives() {
	m.store()
	m.weather()
	if !m.up {
		return
	}
	m.guard()
	if !m.cut && m.clock()-m.beaten >= 10*time.Second {
		m.beaten = m.clock()
		m.s.leases.put(renewed(namespace, v1alpha1.AgentLeasePrefix+m.name, time.Now()))
		m.s.leases.put(renewed(corev1.NamespaceNodeLease, m.name, time.Now()))
	}
	m.agent()
}

// weather changes what is cut, lost, slow, late and dead. The first minute is calm.
func (m *machine) weather() {
	s := m.s
	if m.clock() < time.Minute {
		return
	}
	if !m.up && s.chance(120) {
		m.power()
	}
	if !s.chance(200) {
		return
	}
	switch s.dice.IntN(16) {
	case 0:
		m.cut = !m.cut
	case 1:
		m.deaf = !m.deaf
	case 2:
		s.slow = s.upTo(30 * time.Second)
	case 3:
		s.slow = 0
	case 4:
		s.leases.delay = s.upTo(40 * time.Second)
	case 5:
		s.leases.delay = 0
	case 6:
		other := s.names[s.dice.IntN(len(s.names))]
		m.cutFrom[other] = !m.cutFrom[other]
	case 7:
		m.power()
	case 8, 9:
		s.owner().cut = s.chance(2)
	case 10:
		s.owner().power()
	case 11, 14, 15:
		o := s.ctls[s.dice.IntN(len(s.ctls))]
		o.cut.Store(!o.cut.Load())
	case 12:
		s.leases.breaks() // the next watches go on from here
		if s.leases.version%2 == 0 {
			return
		}
		s.leases.forgets()
		for _, o := range s.ctls {
			o.broken = time.Now()
		}
	case 13:
		o := s.ctls[s.dice.IntN(len(s.ctls))]
		o.stuck[s.dice.IntN(kinds)] = time.Now().Add(s.upTo(time.Minute))
	}
}

// power switches the machine off or on. An administrator taints it, and a power system says so, while it
// is off, or never.
func (m *machine) power() {
	s := m.s
	switch n := s.now().nodes[m.name]; {
	case m.up:
		m.up, m.holds, m.pod, m.decided = false, false, "", nil
		for _, c := range m.calls {
			c.ended = true
		}
	case s.chance(3) && !outOfService(n):
		said := n.DeepCopy()
		if s.chance(2) {
			tainted(said)
		} else {
			switchedOff("machine-of-"+m.name, m.bootID())(said)
		}
		s.changes(func(next *shot) { next.nodes[m.name] = said })
	default:
		if outOfService(n) {
			healthy := n.DeepCopy()
			healthy.Spec.Taints = nil
			s.changes(func(next *shot) { next.nodes[m.name] = healthy })
		}
		m.up, m.cut, m.deaf = true, false, false
		m.boot, m.version, m.heard, m.late, m.closed = m.boot+1, 0, m.clock(), 0, m.epoch
		m.offset = -m.clock()
	}
}

// owner is the machine that owned the volume last.
func (s *sim) owner() *machine { return s.machine(s.now().volume.Status.Ownership.Primary.Node) }

// store is the API server's side of the renewals.
func (m *machine) store() {
	now, name := m.clock(), v1alpha1.GuardLeasePrefix+m.name
	for _, c := range m.calls {
		if !c.done && c.stores <= now {
			c.done = true
			old := m.s.leases.stored[name]
			if old == nil && c.base == 0 || old != nil && old.ResourceVersion == strconv.Itoa(c.base) {
				m.s.leases.put(c.lease)
				c.stored, _ = strconv.Atoi(c.lease.ResourceVersion)
			}
		}
		switch {
		case c.ended:
		case c.stored > 0 && c.answers <= now && now-c.sent < answersIn && !m.deaf && !m.cut:
			c.ended, m.heard, m.version = true, c.sent, c.stored
		case now-c.sent >= answersIn:
			c.ended, m.version = true, 0
		}
	}
	m.calls = slices.DeleteFunc(m.calls, func(c *call) bool { return c.done && c.ended })
}

// guard stops the writers, or renews.
func (m *machine) guard() {
	now := m.clock()
	silent := now - m.heard
	c := &ownership.Contact{SinceRenewal: silent, Sets: make([][]string, 1)}
	for _, p := range m.s.nodes {
		c.Sets[0] = append(c.Sets[0], p.name)
		if p != m && p.up && !m.cutFrom[p.name] && !p.cutFrom[m.name] {
			c.Peers = append(c.Peers, ownership.PeerContact{Node: p.name, SinceRenewal: now - p.heard})
		}
	}
	stop, _ := ownership.MustStop(c)
	switch {
	case !stop:
		m.late = 0
	case m.late == 0:
		m.late = now
	}
	if stop && now-m.late >= ownership.SelfFenceMargin-2*time.Second { // it takes as long as it may
		m.lets()
	}
	busy := slices.ContainsFunc(m.calls, func(c *call) bool { return !c.ended })
	if m.cut || busy || now-m.tried < 5*time.Second || m.late != 0 && m.holds {
		return
	}
	m.tried = now
	if old := m.s.leases.stored[v1alpha1.GuardLeasePrefix+m.name]; m.version == 0 && old != nil {
		m.version, _ = strconv.Atoi(old.ResourceVersion)
	}
	o := guardLease(m.name, m.s.names, now+m.offset)
	o.Annotations[v1alpha1.BootAnnotation], o.Annotations[v1alpha1.SilentAnnotation] = m.bootID(), silent.String()
	stores := now + m.s.upTo(m.s.slow)
	m.calls = append(m.calls, &call{sent: now, stores: stores, answers: stores + m.s.upTo(time.Second), base: m.version, lease: o})
}

// lets gives the epoch up: nothing is written into it again.
func (m *machine) lets() {
	m.holds, m.decided, m.pod = false, nil, ""
	if m.epoch.Number > m.closed.Number {
		m.closed = m.epoch
	}
}

// agent decides, and carries out later what it decided. Anything may come between.
func (m *machine) agent() {
	if m.cut || m.late != 0 || !m.s.chance(8) {
		return
	}
	if do := m.decided; do != nil {
		m.decided = nil
		do()
		return
	}
	read := m.s.now().volume.DeepCopy()
	v, err := record.From(read)
	if err != nil {
		m.s.fail("the record cannot be read: %v", err)
		return
	}
	mine := v.Primary.Node == m.name && v.Primary.Phase.Open()
	writes := func(edit func(*ownership.Volume), then func()) {
		next := *v
		edit(&next)
		o, err := record.Into(read, &next)
		if err != nil {
			m.s.fail("the record cannot be written: %v", err)
			return
		}
		m.decided = func() {
			if m.s.put(o, false) == nil {
				then()
			}
		}
	}
	switch {
	case mine && (v.Epoch != m.epoch || !m.holds):
		writes(func(n *ownership.Volume) { n.Primary.Phase = ownership.Released }, func() {})
	case mine && v.Primary.Phase == ownership.Preparing:
		writes(func(n *ownership.Volume) { n.Primary.Phase = ownership.Active }, m.mount)
	case mine && m.s.chance(40):
		m.lets()
		writes(func(n *ownership.Volume) { n.Primary.Phase = ownership.Released }, func() {})
	case m.holds && v.Epoch != m.epoch:
		m.lets()
	case !v.Primary.Phase.Open() && !outOfService(m.s.now().nodes[m.name]) && m.s.chance(6):
		e := m.s.newEpoch(v.Epoch)
		writes(func(n *ownership.Volume) {
			n.Epoch, n.Clean, n.Primary = e, false, ownership.Primary{Node: m.name, Boot: m.bootID(), Phase: ownership.Preparing}
			n.Lineage = n.Lineage.Extend(lineage.Branch{Epoch: e, From: n.RecoveryPoint})
		}, func() {
			m.epoch, m.holds = e, true
			m.s.takeovers++
		})
	}
}

// mount begins a pod that writes in the epoch.
func (m *machine) mount() {
	if !m.holds {
		return
	}
	m.pods++
	p := pod(fmt.Sprintf("%s-%d", m.name, m.pods), m.name)
	p.UID, p.Labels = types.UID(p.Name), map[string]string{"epoch": m.epoch.ID}
	m.pod = p.Name
	m.s.changes(func(n *shot) { n.pods[p.Name] = p })
}
