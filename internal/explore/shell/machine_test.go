package shell

import (
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision/memory"
)

// machine is a node: what outlives its processes, and what outlives its boots. The world's lock guards what
// changes, but for what the machine is asked from everywhere: those values are atomic.
type machine struct {
	w     *world
	name  string
	lives int
	boot  atomic.Int64
	disk  *journaltest.Disk // of the journal
	pool  *memory.Disks     // nil where volumes are shared disks
	memo  memo

	up atomic.Bool
	// resume is closed when the machine wakes; nil while it is awake.
	resume chan struct{}
	// frozen is for how long its clock has stood still.
	frozen time.Duration
	slept  time.Time
	// still: its clock stands still while it sleeps. stood is when it last ran on after that, and woke when the
	// machine last woke.
	still       bool
	stood, woke time.Time
	// hit is until when a fault hits it.
	hit     time.Time
	apiAway bool
	sanAway bool
	// peersAway: it reaches no other node, and none reaches it.
	peersAway bool
	tainted   atomic.Bool
	// deleted: it has no Node. gone: it never comes back if it is off. deletedAt is when that was.
	deleted, gone atomic.Bool
	deletedAt     time.Time

	kernels map[string]*kernel
	// ran are the pods whose container has begun in this boot.
	ran map[types.UID]bool
	// dirs are the volumes of which the kubelet has a directory: they are to be unstaged, also after a boot.
	dirs    map[string]bool
	os      *process
	guard   *sentry
	agent   *agent
	kubelet *kubelet
	// kept is what the guard keeps through its own death.
	kept   keep.State
	armed  bool // the watchdog
	resets time.Time
	within time.Duration
}

func (m *machine) bootID() string { return fmt.Sprintf("%s-boot%d", m.name, m.boot.Load()) }

// bootClock counts while the machine sleeps, unless its clock stands still then.
func (m *machine) bootClock() (now time.Duration) {
	m.w.locked(func() {
		now = time.Hour + time.Since(m.w.began) - m.frozen
		if m.resume != nil && m.still {
			now -= time.Since(m.slept)
		}
	})
	return now
}

// awake returns when the machine is awake.
func (m *machine) awake() {
	for {
		var asleep chan struct{}
		m.w.locked(func() { asleep = m.resume })
		if asleep == nil {
			return
		}
		<-asleep
	}
}

func (m *machine) sleeps(still bool) {
	m.w.locked(func() {
		if m.resume == nil && m.up.Load() {
			m.resume, m.slept, m.still = make(chan struct{}), time.Now(), still
		}
	})
}

func (m *machine) wakes() {
	m.w.locked(func() {
		if m.resume == nil {
			return
		}
		if m.still {
			m.frozen += time.Since(m.slept)
			m.stood = time.Now()
		}
		m.woke = time.Now()
		close(m.resume)
		m.resume = nil
	})
}

// runs says whether the machine's processes run now.
func (m *machine) runs() (is bool) {
	m.w.locked(func() { is = m.up.Load() && m.resume == nil })
	return is
}

func (m *machine) awayFromAPI() bool { return !m.runs() || m.cutFrom(toAPI) }

// cutFrom says whether a way out of the machine leads nowhere.
func (m *machine) cutFrom(by way) (is bool) {
	m.w.locked(func() { is = by == toAPI && m.apiAway || by == toSAN && m.sanAway })
	return is || by == toAPI && m.w.api.down.Load()
}

// linked says whether two nodes reach each other.
func (m *machine) linked(other *machine) (is bool) {
	m.w.locked(func() { is = m == other || !m.peersAway && !other.peersAway })
	return is
}

// answering is the guard of the machine if it would answer another node now.
func (m *machine) answering(asker *machine) (s *sentry) {
	if m == nil || !m.runs() || !m.linked(asker) {
		return nil
	}
	m.w.locked(func() { s = m.guard })
	if s == nil || s.p.isDead() {
		return nil
	}
	return s
}

func (m *machine) all() (kernels []*kernel) {
	m.w.locked(func() {
		for _, v := range m.w.volumes {
			kernels = append(kernels, m.kernels[v.name])
		}
	})
	return kernels
}

func (m *machine) kernel(volume string) (k *kernel) {
	m.w.locked(func() { k = m.kernels[volume] })
	return k
}

func (m *machine) kernelOf(h guard.Holding) *kernel {
	for _, k := range m.all() {
		if k.v.device == h.Device {
			return k
		}
	}
	return nil
}

// powersOn begins a boot.
func (m *machine) powersOn() {
	if m.up.Load() || m.gone.Load() || m.w.over() {
		return
	}
	m.w.locked(func() {
		m.boot.Add(1)
		m.up.Store(true)
		m.w.tells(m.name, "begins boot %d", m.boot.Load())
		m.armed, m.kept, m.kernels, m.ran = false, keep.State{}, map[string]*kernel{}, map[types.UID]bool{}
		for _, v := range m.w.volumes {
			m.kernels[v.name] = &kernel{m: m, v: v, backing: v.at(m), binds: map[types.UID]lineage.Epoch{}, covered: map[types.UID]bool{}, targets: map[types.UID]bool{}, containers: map[types.UID]*container{}}
		}
	})
	boot := m.bootID()
	m.annotates(func(n *corev1.Node) { n.Status.NodeInfo.BootID = boot })
	m.os = m.begins("os")
	m.guards()
	m.agents()
	m.kubelets()
}

// agentNow is the agent of the machine.
func (m *machine) agentNow() (a *agent) {
	m.w.locked(func() { a = m.agent })
	return a
}

// guardNow is the guard of the machine, and kubeletNow its kubelet.
func (m *machine) guardNow() (s *sentry) {
	m.w.locked(func() { s = m.guard })
	return s
}

func (m *machine) kubeletNow() (k *kubelet) {
	m.w.locked(func() { k = m.kubelet })
	return k
}

// powersOff ends everything on the machine. What was not synced is lost.
func (m *machine) powersOff() {
	m.wakes()
	if !m.up.Load() {
		return
	}
	if !m.w.over() {
		m.w.tells(m.name, "loses its power")
	}
	m.os.dies()
	m.guardNow().p.dies()
	if a := m.agentNow(); a != nil {
		a.p.dies()
	}
	m.kubeletNow().p.dies()
	for _, c := range m.w.controllers {
		if c.p.m == m {
			c.p.dies()
		}
	}
	m.w.locked(func() {
		m.up.Store(false)
		m.armed = false
		for _, k := range m.kernels {
			for _, c := range k.containers {
				c.killed = true
				c.device.closes()
				if len(c.waiting) > 0 {
					m.w.oracle.lost[c.epoch] = true
				}
			}
			if k.staged != nil {
				k.staged.closes()
			}
			if err := k.backing.falls(); err != nil {
				panic(err)
			}
		}
	})
	m.disk.PowerOff()
}

// annotates changes the Node of the machine, if it has one.
func (m *machine) annotates(change func(n *corev1.Node)) {
	if m.deleted.Load() {
		return
	}
	if err := edit(m.w.api, client.ObjectKey{Name: m.name}, change); err != nil {
		m.w.fail("changing Node %s: %v", m.name, err)
	}
}

// durable is what the journal has after a loss of power now.
func (m *machine) durable(volume string) journal.Kept {
	k, _, err := journal.Journal{Files: m.disk.Durable()}.Load(volume)
	if err != nil {
		return journal.Kept{}
	}
	if m.pool != nil { // what counts of a copy is beside its data
		s := m.copyOf(volume)
		k.Promise, k.Opened, k.Closed = s.Promise, s.Opened, s.Closed
	}
	return k
}

func (m *machine) opened(volume string) (lineage.Epoch, error) {
	if m.pool != nil {
		return m.copyOf(volume).Opened, nil
	}
	k, _, err := m.memo.load(journal.Journal{Files: m.disk}, volume)
	return k.Opened, err
}
