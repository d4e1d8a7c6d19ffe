package attacher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/attacher"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

// desk has the orders of all nodes, as an API server has them.
// Each answer is compared with the truth.
type desk struct {
	t     *testing.T
	clock *clocktesting.FakeClock
	cloud *simcloud.Cloud
	mu    sync.Mutex
	next  int
	has   map[string]map[string]attacher.Order
}

func (b *desk) Orders(_ context.Context, node string) (all []attacher.Order, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.has[node] {
		all = append(all, o)
	}
	return all, nil
}

func (b *desk) Still(_ context.Context, node string, o attacher.Order) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, is := b.has[node][o.Disk.Handle]
	return is && now.ID == o.ID, nil
}

func (b *desk) Answer(_ context.Context, node string, o attacher.Order, state ownership.OrderState, problem string, done bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, is := b.has[node][o.Disk.Handle]
	if !is || now.ID != o.ID {
		return nil
	}
	if attached := slices.Contains(b.cloud.At(o.Disk.Handle), node); done && attached || state == ownership.Carried && !attached {
		b.t.Errorf("node %s is told %v, done %v, of disk %s, and it is attached: %v", node, state, done, o.Disk.Handle, attached)
	}
	if done {
		delete(b.has[node], o.Disk.Handle)
		return nil
	}
	now.State, now.Problem, now.Since = state, problem, b.clock.Now()
	b.has[node][o.Disk.Handle] = now
	return nil
}

// side are the orders of one node.
type side struct {
	*desk
	node string
}

func (s side) Read(_ context.Context, d shared.Disk) (ownership.Order, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, is := s.has[s.node][d.Handle]
	return o.Order, is, nil
}

func (s side) Place(_ context.Context, d shared.Disk, wish ownership.Wish) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	if s.has[s.node] == nil {
		s.has[s.node] = map[string]attacher.Order{}
	}
	s.has[s.node][d.Handle] = attacher.Order{Disk: d, Order: ownership.Order{ID: fmt.Sprint(s.next), Wish: wish, Since: s.clock.Now()}}
	return nil
}

var errDied = errors.New("the process died")

// mortal is the world of a controller that dies at one of its effects: before it, or after it and before its
// answer. Everything fails from then on.
type mortal struct {
	*simcloud.Cloud
	attacher.Book
	// at is the effect at which it dies, and after says that the effect happens; lived counts effects.
	at    int
	after bool
	lived int
}

func (m *mortal) effect(do func() error) error {
	m.lived++
	if m.at > 0 && (m.lived > m.at || m.lived == m.at && !m.after) {
		return errDied
	}
	err := do()
	if m.at > 0 && m.lived == m.at {
		return errDied
	}
	return err
}

func (m *mortal) dead() bool { return m.at > 0 && m.lived >= m.at }

func (m *mortal) Change(ctx context.Context, node string, attach, detach []shared.Disk) (name string, err error) {
	err = m.effect(func() (err error) { name, err = m.Cloud.Change(ctx, node, attach, detach); return err })
	return name, err
}

func (m *mortal) Progress(ctx context.Context, node, name string) (out shared.Progress, err error) {
	err = m.effect(func() (err error) { out, err = m.Cloud.Progress(ctx, node, name); return err })
	return out, err
}

func (m *mortal) Attached(ctx context.Context, node string) (disks []string, err error) {
	err = m.effect(func() (err error) { disks, err = m.Cloud.Attached(ctx, node); return err })
	return disks, err
}

func (m *mortal) Answer(ctx context.Context, node string, o attacher.Order, state ownership.OrderState, problem string, done bool) error {
	return m.effect(func() error { return m.Book.Answer(ctx, node, o, state, problem, done) })
}

// site is a cloud with machines, and the orders of their nodes.
type site struct {
	t     *testing.T
	clock *clocktesting.FakeClock
	cloud *simcloud.Cloud
	desk  *desk // nil if the orders are at an API server
	// book has the orders of all nodes, and side those of one.
	book attacher.Book
	side func(node string) ordered.Book
	// controller is the one that lives.
	controller *attacher.Attacher
	names      []string
}

var began = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)

func newSite(t *testing.T, c simcloud.Config, names ...string) *site {
	t.Helper()
	s := &site{t: t, clock: clocktesting.NewFakeClock(began), names: names}
	c.Clock = s.clock
	s.cloud = simcloud.New(c)
	s.desk = &desk{t: t, clock: s.clock, cloud: s.cloud, has: map[string]map[string]attacher.Order{}}
	s.book, s.side = s.desk, func(node string) ordered.Book { return side{s.desk, node} }
	for _, n := range names {
		s.cloud.AddMachine(n)
	}
	s.restart()
	return s
}

// restart puts a new controller in place of the one that lives.
func (s *site) restart() { s.controller = attacher.New(s.cloud, s.book, s.clock) }

// disk makes a disk.
func (s *site) disk(name string, shares int) shared.Disk {
	s.t.Helper()
	d := shared.Disk{Volume: v1alpha1.VolumeName(name), Handle: "simcloud:///" + name, Identity: "wwn:1", Persistent: true}
	if err := s.cloud.Create(s.t.Context(), d.Handle, simcloud.Spec{Identity: d.Identity, Bytes: 1 << 30, Shares: shares}); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// node is a node's agent that has just begun: it remembers nothing.
func (s *site) node(name string) *ordered.Disks {
	return ordered.New(s.cloud.Machine(name), s.side(name), s.clock)
}

// settled lets a controller work until nothing is left to do, as time passes; false if it died.
func (s *site) settled(c *attacher.Attacher, dead func() bool) bool {
	s.t.Helper()
	for deadline := s.clock.Now().Add(time.Hour); s.clock.Now().Before(deadline); {
		var next time.Duration
		for _, n := range s.names {
			again, err := c.Carry(s.t.Context(), n)
			if dead() {
				return false
			}
			if err != nil {
				s.t.Fatal(err)
			}
			if again > 0 && (next == 0 || again < next) {
				next = again
			}
		}
		if next == 0 {
			return true
		}
		s.clock.Step(next)
	}
	s.t.Fatal("the controller has not come to an end within an hour")
	return false
}

func (s *site) settle() { s.t.Helper(); s.settled(s.controller, func() bool { return false }) }

// settleDying lets controllers die one after the other, each one effect later than the one before, until one
// lives to the end.
func (s *site) settleDying(after bool) {
	s.t.Helper()
	for at := 1; ; at++ {
		m := &mortal{Cloud: s.cloud, Book: s.book, at: at, after: after}
		if s.settled(attacher.New(m, m, s.clock), m.dead) {
			return
		}
	}
}

// looks waits for nothing: it is what a node sees now.
func (s *site) looks(node string, d shared.Disk) shared.View {
	s.t.Helper()
	v, err := s.node(node).Look(s.t.Context(), d)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *site) order(node string, d shared.Disk, wish ownership.Wish) {
	s.t.Helper()
	n, err := s.node(node), error(nil)
	if wish == ownership.ToAttach {
		err = n.Attach(s.t.Context(), d)
	} else {
		err = n.Detach(s.t.Context(), d)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// at checks to which machines a disk is attached in truth, and that their nodes, and no other, see it so.
func (s *site) at(d shared.Disk, want ...string) {
	s.t.Helper()
	if got := s.cloud.At(d.Handle); !slices.Equal(got, want) {
		s.t.Errorf("disk %s is attached to %q, want %q", d.Handle, got, want)
	}
	for _, n := range s.names {
		link := ownership.Detached
		if slices.Contains(want, n) {
			link = ownership.Attached
		}
		if v := s.looks(n, d); v.Link != link {
			s.t.Errorf("node %s sees disk %s %v (%s), want %v", n, d.Handle, v.Link, v.Problem, link)
		}
	}
}
