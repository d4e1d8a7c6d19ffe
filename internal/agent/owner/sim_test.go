package owner_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

var (
	schedules = flag.Uint64("schedules", 100, "how many random schedules the owners are driven by")
	from      = flag.Uint64("from", 0, "the first schedule")
)

const steps = 1500

// event lets something happen besides the tasks.
func (c *cluster) event() {
	m := c.machines[c.s.dice.IntN(len(c.machines))]
	switch n := c.s.dice.IntN(200); {
	case n < 30:
		m.writes()
	case n < 60:
		if !m.slept {
			m.kubelet()
		}
	case n < 90:
		if !m.slept && (m.poked || c.s.chance(4)) {
			m.tends()
		}
	case n < 110:
		if !m.slept {
			c.s.begin(m.agent, "watch", func() { _ = m.owner.Watch(c.ctx); m.poked = true })
		}
	case n < 125:
		if !m.slept {
			c.s.begin(m.agent, "vouch", func() { _ = m.owner.Vouch(c.ctx) })
		}
	case n < 150:
		c.controls()
	case n < 158:
		m.lands()
	case n < 165:
		c.losesOrWrites(m)
	case n < 175:
		c.ticks(time.Second * time.Duration(1+c.s.dice.IntN(5)))
	default:
		c.fault(m, n-175)
	}
}

func (m *machine) tends() {
	m.poked = false
	m.c.s.begin(m.agent, "tend", func() {
		if _, err := m.owner.Tend(m.c.ctx, theVolume); err != nil {
			m.poked = true
		}
	})
}

// losesOrWrites lets the kernel write its pages.
func (c *cluster) losesOrWrites(m *machine) {
	e, waits := c.buffered[m]
	if waits && !m.slept {
		c.judgeWrite(e, m.kernel.WriteBack())
		delete(c.buffered, m)
	}
}

func (m *machine) lands() {
	if len(m.late) > 0 {
		w := m.late[0]
		m.late = m.late[1:]
		m.c.judgeWrite(w.Epoch, m.kernel.Land(w))
	}
}

func (c *cluster) ticks(d time.Duration) {
	c.now += d
	for _, m := range c.machines {
		if !m.slept && !m.fenced && !c.down && c.now-m.renewed < ownership.SelfFenceAfter {
			m.renewed = c.now
		}
		if !m.slept && c.now-m.renewed >= ownership.SelfFenceAfter {
			m.stops()
		}
	}
}

// stops is the guard that stops the writers.
func (m *machine) stops() {
	if !m.fenced {
		m.fenced = true
		m.unmounts()
	}
}

func (c *cluster) fault(m *machine, n int) {
	if !c.faulty || n < 22 && !c.s.chance(c.calm) {
		return
	}
	switch {
	case n < 4:
		c.s.end(m.agent)
		m.starts()
	case n < 6:
		c.losesPages(m)
		if len(m.late) > 0 {
			c.lost[m.late[0].Epoch] = true
			m.late = nil
		}
		c.s.end(m.agent)
		m.unmounts()
		if err := c.target.Crash(m.name); err != nil {
			c.fail("crash: %v", err)
		}
		m.disk.PowerOff()
		m.boots()
	case n < 11:
		m.slept = true
	case n < 16:
		m.slept = m.slept && c.plot.sleeps(m)
	case n < 19:
		_ = c.target.Relogin(m.name)
		if c.s.chance(2) {
			m.writes() // before the agent knows
		}
	case n == 19:
		_ = c.target.Restart()
	case n == 20:
		c.down = !c.down
	case n == 21:
		c.restore()
	default:
		c.moves()
	}
}

// moves lets the pod end on its node, or a pod begin on another.
func (c *cluster) moves() {
	for _, m := range c.machines {
		m.wanted = false
	}
	if !c.s.chance(4) {
		c.machines[c.s.dice.IntN(len(c.machines))].wanted = true
	}
}

// run plays a schedule, and then lets all faults end.
func run(ctx context.Context, seed uint64, nodes int, mistake mistakes) *cluster {
	c := newCluster(ctx, seed, nodes, mistake)
	for range steps {
		if c.violation != "" {
			break
		}
		c.plot.passes(c)
		if c.s.chance(3) || !c.s.step(func(t *task) bool { return !t.of.m.slept }) {
			c.event()
		}
	}
	c.judgeLog()
	if c.violation == "" {
		c.settle()
		c.judgeLog()
	}
	for _, m := range c.machines {
		c.s.end(m.agent)
	}
	return c
}

// settle ends the faults. The pod must then get its volume.
func (c *cluster) settle() {
	c.faulty, c.down = false, false
	wanted := c.machines[c.s.dice.IntN(len(c.machines))]
	for _, m := range c.machines {
		m.slept, m.wanted = false, m == wanted
		if c.now-m.renewed >= ownership.SelfFenceAfter {
			m.stops()
		}
	}
	for round, rests := 0, 0; round < 80 && rests < 5 && c.violation == ""; round++ {
		rests++
		if !c.has(wanted) {
			rests = 0
		}
		for _, m := range c.machines {
			m.lands()
			c.losesOrWrites(m)
			m.kubelet()
			m.tends()
			c.s.begin(m.agent, "vouch", func() { _ = m.owner.Vouch(c.ctx) })
			c.s.begin(m.agent, "watch", func() { _ = m.owner.Watch(c.ctx) })
			if m.served && m.device == nil { // the pod has a dead mount, and is ended
				m.served = false
			}
		}
		c.controls()
		for c.s.step(func(*task) bool { return true }) {
		}
		c.ticks(2 * time.Second)
	}
	if c.violation != "" {
		return
	}
	if v := c.current().Status.Ownership; !c.has(wanted) {
		c.fail("rest: the pod on %s has no volume (served %v, mounted %v: %v); the record says %s of %s in epoch %v", wanted.name, wanted.served, wanted.device != nil, wanted.said, v.Primary.Phase, v.Primary.Node, v.Epoch)
		return
	}
	if err := wanted.device.Write("last"); err != nil {
		c.fail("rest: the pod on %s cannot write: %v", wanted.name, err)
	}
}

// has says whether the pod on a machine has the volume, and the record says so.
func (c *cluster) has(m *machine) bool {
	p := c.current().Status.Ownership.Primary
	return m.served && m.device != nil && p.Node == m.name && p.Phase == v1alpha1.PrimaryActive
}

func TestOwnersOnOneDiskNeverWriteTwoEpochsInterleaved(t *testing.T) {
	total := oracle{}
	for nodes := 2; nodes <= 3; nodes++ {
		for seed := *from; seed < *from+*schedules; seed++ {
			c := run(t.Context(), seed, nodes, mistakes{})
			if c.violation != "" {
				t.Fatalf("schedule %d with %d nodes: %s", seed, nodes, c.violation)
			}
			total.mounts += c.mounts
			total.refused += c.refused
			total.takeovers += c.takeovers
			total.fences += c.fences
			total.released += c.released
		}
	}
	got := fmt.Sprintf("%d takeovers, %d mounts, %d fences, %d releases, %d writes refused", total.takeovers, total.mounts, total.fences, total.released, total.refused)
	t.Log(got)
	if n := int(*schedules); total.takeovers < n || total.fences < n/10 || total.refused < n/10 || total.mounts < n || total.released < n {
		t.Errorf("too little happens: %s", got)
	}
}
