package owner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/publish/staging"
)

// calm is a cluster of two nodes without faults. The disk is attached to both, and no pod wants it.
func calm(t *testing.T, edits ...func(*v1alpha1.Volume)) *cluster {
	t.Helper()
	c := newCluster(t.Context(), 1, 2, mistakes{})
	c.faulty = false
	for _, edit := range edits {
		edit(c.current())
	}
	t.Cleanup(func() {
		if c.violation != "" {
			t.Error(c.violation)
		}
		for _, m := range c.machines {
			c.s.end(m.agent)
		}
	})
	c.machines[0].wanted, c.machines[1].wanted = true, true
	for range 10 {
		c.works(1)
	}
	c.machines[0].wanted, c.machines[1].wanted = false, false
	for _, e := range c.current().Status.Ownership.Replicas {
		if e.State != v1alpha1.OwnedReady {
			t.Fatalf("the attachment of %s is %s", e.Node, e.State)
		}
	}
	return c
}

// works lets all agents and the controller work, without a call of the kubelet.
func (c *cluster) works(rounds int) {
	for range rounds {
		for _, m := range c.machines {
			m.tends()
			c.s.begin(m.agent, "vouch", func() { _ = m.owner.Vouch(c.ctx) })
		}
		c.finish()
		c.controls()
		c.ticks(1e9)
	}
}

func (c *cluster) finish() {
	for c.s.step(func(*task) bool { return true }) {
	}
}

// does makes a call in a machine's agent and returns its error.
func (m *machine) does(call func() error) (err error) {
	m.c.effects = nil
	err = errDead
	m.c.s.begin(m.agent, "call", func() { err = call() })
	m.c.finish()
	return err
}

func (m *machine) take() error {
	return m.does(func() error { return m.owner.Take(m.c.ctx, theVolume, m.mounts()) })
}

func (m *machine) holds() error {
	return m.does(func() error {
		return m.owner.Holds(m.c.ctx, theVolume, "", func(context.Context) error { return nil })
	})
}

func (m *machine) off() staging.Off {
	return staging.Off{
		Unmount: func(context.Context) error { m.unmounts(); return nil },
		Left:    func(context.Context) ([]string, error) { return (&world{m: m}).Mounts(theDiskContent) },
	}
}

func (m *machine) give() error {
	return m.does(func() error { return m.owner.Give(m.c.ctx, theVolume, m.off()) })
}

func (c *cluster) phase() string {
	p := c.current().Status.Ownership.Primary
	return string(p.Phase) + " " + p.Node
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// changing are the effects that change something.
func changing(effects []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(effects), func(e string) bool {
		return slices.Contains([]string{"Load", "Read", "Look", "Standing"}, e)
	}), " ")
}

// diesAt makes a call whose agent, or machine, dies when it reaches an effect; false if there is none.
func diesAt(t *testing.T, n int, power, giving bool) bool {
	t.Helper()
	c := calm(t)
	a := c.machines[0]
	a.wanted = true
	if giving {
		must(t, a.take())
		a.wanted, a.served = false, true
	}
	return c.crashes(a, n, power, giving)
}

// crashes runs a call until an effect, ends the agent there, and lets the cluster come to rest.
func (c *cluster) crashes(a *machine, n int, power, giving bool) bool {
	ended := false
	c.effects = nil
	c.s.begin(a.agent, "dying", func() {
		if giving {
			_ = a.owner.Give(c.ctx, theVolume, a.off())
		} else {
			_ = a.owner.Take(c.ctx, theVolume, a.mounts())
		}
		ended = true
	})
	for more := true; more && len(c.effects) < n; {
		more = c.s.step(func(*task) bool { return true })
	}
	if ended {
		return false
	}
	c.s.end(a.agent)
	if power {
		a.unmounts()
		_ = c.target.Crash(a.name)
		a.disk.PowerOff()
		a.boots()
	} else {
		a.starts()
	}
	c.settle()
	c.judgeLog()
	return true
}

func TestACallGoesOnAfterACrashAtAnyEffect(t *testing.T) {
	for _, power := range []bool{false, true} {
		for call, giving := range map[string]bool{"take": false, "give": true} {
			n := 1
			for diesAt(t, n, power, giving) {
				n++
			}
			if n < 15 {
				t.Errorf("%s has only %d effects", call, n)
			}
		}
	}
}
