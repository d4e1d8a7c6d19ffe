package shell

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/guard/lease"
	"berth.dev/berth/internal/ownership"
)

const namespace = "berth"

// sentry is the guard of a machine: the product's, with what it does to the machine.
type sentry struct {
	p *process
	m *machine
	*keep.Keeper
	// opened: this life of the guard has the watchdog open.
	opened bool
}

// ticking is a clock whose tickers stand still while the machine sleeps.
type ticking struct {
	clock.RealClock
	p *process
}

type ticker struct {
	out  chan time.Time
	stop context.CancelFunc
}

func (t *ticker) C() <-chan time.Time { return t.out }
func (t *ticker) Stop()               { t.stop() }

// NewTicker implements clock.WithTicker.
func (t ticking) NewTicker(every time.Duration) clock.Ticker {
	ctx, stop := context.WithCancel(t.p.ctx)
	k := &ticker{out: make(chan time.Time, 1), stop: stop}
	d := rolled(t.p.w.seed, 0, t.p.name, "ticks") // the same of all its tickers: two may be made in one moment
	go func() {
		if t.p.passes(ctx, d.upTo(every)) != nil {
			return
		}
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case k.out <- time.Now():
			default:
			}
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			// A call that a tick begins, and that has some seconds, would end in the moment of another tick, and chance
			// would say what comes first.
			if waits(ctx, d.upTo(time.Millisecond)) != nil {
				return
			}
			t.p.m.awake()
		}
	}()
	return k
}

// guards begins a life of the guard. What the one before kept in this boot is in m.kept.
func (m *machine) guards() {
	p := m.begins("guard")
	s := &sentry{p: p, m: m}
	k, err := keep.New(m.w.mistake.guard.of(p, keep.Config{
		Boot: m.bootID(), Now: m.bootClock, Node: m.name,
		Lease: &lease.Lease{Client: &caller{p: p}, Node: m.name, Namespace: namespace, Boot: m.bootID(), Now: time.Now},
		Peers: s, Writers: s, Watchdog: (*dog)(s), Store: s, Clock: ticking{p: p}, Log: m.w.log(p),
	}))
	if err != nil {
		m.w.fail("the guard of %s does not begin: %v", m.name, err)
		return
	}
	s.Keeper = k
	m.w.locked(func() { m.guard = s })
	go func() { _ = k.Run(p.ctx, nil) }()
}

// Load and Save implement keep.Store. They are called with the guard's lock, so no time passes in them.
func (s *sentry) Load() (k keep.State, err error) {
	s.m.w.locked(func() { k = s.m.kept })
	return k, nil
}

func (s *sentry) Save(k keep.State) error {
	if s.p.isDead() {
		return errDead
	}
	s.m.w.locked(func() {
		if was := s.m.kept; was.Fenced != k.Fenced || len(was.Open) != len(k.Open) {
			s.m.w.tells(s.p.name, "is fenced: %t; knows of %d open epochs", k.Fenced, len(k.Open))
		}
		s.m.kept = k
	})
	return nil
}

// Contacts implements keep.Peers.
func (s *sentry) Contacts(ctx context.Context, nodes []string) (answers []ownership.PeerContact) {
	d := s.p.dice("Contacts", "")
	if s.p.passes(ctx, d.upTo(100*time.Millisecond)) != nil {
		return nil
	}
	for _, n := range nodes {
		other := s.m.w.machine(n)
		if g := other.answering(s.m); g != nil {
			answers = append(answers, ownership.PeerContact{Node: n, SinceRenewal: g.Status().SinceRenewal})
		}
	}
	return answers
}

// Stop implements keep.Writers.
func (s *sentry) Stop(h guard.Holding) error {
	return s.p.effect(s.p.ctx, local, "Stop", h.Device, func() error {
		k := s.m.kernelOf(h)
		if err := k.kills(s.p); err != nil {
			return err
		}
		s.m.w.mu.Lock()
		paths := k.paths()
		s.m.w.mu.Unlock()
		for _, path := range paths {
			s.m.unmounts(path)
			_ = s.m.covers(path)
		}
		if len(paths) > 0 {
			s.m.w.count("writers stopped by guards")
			s.m.w.tells(s.p.name, "has stopped the writers of %s", k.v.short)
		}
		return nil
	})
}

// Free implements keep.Writers.
func (s *sentry) Free(h guard.Holding) error {
	return s.p.effect(s.p.ctx, local, "Free", h.Device, func() error {
		if k := s.m.kernelOf(h); k.v.target == nil || !s.m.cutFrom(toSAN) {
			return k.held()
		}
		return errors.New("the device takes no flush")
	})
}

// Allow implements keep.Writers.
func (s *sentry) Allow(guard.Holding) error { return nil }

// dog is the machine's watchdog. Its methods are called with the guard's lock, so no time passes in them.
type dog sentry

func (d *dog) Arm(_, short time.Duration) error {
	d.m.w.locked(func() {
		if !d.opened && !d.p.isDead() {
			d.opened, d.m.armed = true, true
			d.m.feeds(short)
		}
	})
	return nil
}

func (d *dog) Armed() (is bool) {
	d.m.w.locked(func() { is = d.m.armed && d.opened })
	return is
}

func (d *dog) Promises() bool  { return d.Armed() }
func (d *dog) Stoppable() bool { return true }

func (d *dog) Disarm() error {
	d.m.w.locked(func() {
		if !d.p.isDead() {
			d.m.armed, d.opened = false, false
		}
	})
	return nil
}

func (d *dog) Feed(within time.Duration) error {
	d.m.w.locked(func() {
		if !d.p.isDead() && d.opened {
			d.m.feeds(within)
		}
	})
	return nil
}

func (d *dog) Shorten(within time.Duration) error {
	d.m.w.locked(func() {
		if !d.p.isDead() && d.opened && time.Now().Add(within).Before(d.m.resets) {
			d.m.feeds(within)
		}
	})
	return nil
}

// feeds puts the reset off. It is called with the world's lock.
func (m *machine) feeds(within time.Duration) {
	boot := m.boot.Load()
	m.within = within
	m.resets = time.Now().Add(within)
	at := m.resets
	time.AfterFunc(within, func() { m.bites(boot, at) })
}

// bites resets the machine, unless the watchdog was fed since. A machine that sleeps does so when it wakes.
func (m *machine) bites(boot int64, at time.Time) {
	m.awake()
	due := false
	m.w.locked(func() { due = m.up.Load() && m.armed && m.boot.Load() == boot && m.resets.Equal(at) })
	if due {
		m.w.count("resets by watchdogs")
		m.w.tells(m.name, "is reset by its watchdog")
		m.powersOff()
		time.AfterFunc(3*time.Second+time.Duration(m.boot.Load()), m.powersOn)
	}
}

// door is how an agent talks to the guard of its machine.
type door struct{ p *process }

var errNoGuard = errors.New("the guard does not answer")

func (x door) call(ctx context.Context, what, about string, f func(s *sentry) error) error {
	return x.p.effect(ctx, local, what, about, func() error {
		var s *sentry
		x.p.w.locked(func() { s = x.p.m.guard })
		if s == nil || s.p.isDead() {
			return errNoGuard
		}
		return f(s)
	})
}

// Open implements owner.Guard.
func (x door) Open(ctx context.Context, e guard.Epoch) (warning string, err error) {
	err = x.call(ctx, "GuardOpen", e.Volume, func(s *sentry) error {
		warning, err = s.Keeper.Open(e)
		return err
	})
	return warning, err
}

// Close implements owner.Guard.
func (x door) Close(ctx context.Context, e guard.Epoch) error {
	return x.call(ctx, "GuardClose", e.Volume, func(s *sentry) error { return s.Keeper.Close(e) })
}

// Closed implements owner.Guard.
func (x door) Closed(ctx context.Context) error {
	return x.call(ctx, "GuardClosed", "", func(s *sentry) error {
		x.p.w.oracle.vouches(x.p.m)
		return s.Keeper.Closed()
	})
}

// Status implements owner.Guard.
func (x door) Status(ctx context.Context) (status keep.Status, err error) {
	err = x.call(ctx, "GuardStatus", "", func(s *sentry) error {
		status = s.Keeper.Status()
		return nil
	})
	return status, err
}
