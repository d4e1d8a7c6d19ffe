package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	errDead  = errors.New("the process has died")
	errFault = errors.New("it does not work now")
	errAway  = errors.New("connection refused")
)

// process is one life of an agent, a guard, a kubelet or a controller. It runs the product's code, and all that
// this code does to the world goes through effect. What a dead process still does has no effect.
type process struct {
	w    *world
	m    *machine // it sleeps, and loses its power, with this machine
	kind string   // agent, guard, kubelet or controller
	name string
	// began is when its life began.
	began time.Time
	ctx   context.Context
	stop  context.CancelFunc

	dead   atomic.Bool
	mu     sync.Mutex
	counts map[doing]uint64
}

func (m *machine) begins(kind string) *process {
	m.lives++
	p := &process{w: m.w, m: m, kind: kind, name: fmt.Sprintf("%s/%s-%d", m.name, kind, m.lives), counts: map[doing]uint64{}, began: time.Now()}
	p.ctx, p.stop = context.WithCancel(m.w.ctx)
	return p
}

// dies ends the process. Its goroutines find out at their next effect.
func (p *process) dies() {
	p.dead.Store(true)
	p.stop()
}

func (p *process) isDead() bool { return p.dead.Load() }

// doing is something that a process does, and what it is about: goroutines that do the same to two objects in one
// moment do not share dice.
type doing struct{ what, about string }

// again is how often the process has done something, this time included.
func (p *process) again(d doing) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[d]++
	return p.counts[d]
}

// dice are those of the next time that the process does something.
func (p *process) dice(what, about string) dice {
	d := doing{what, about}
	return rolled(p.w.seed, p.again(d), p.name, what, about)
}

// freshID is an id that the process gives once. It follows from the moment: two volumes that are decided about in one
// moment do not share a count.
func (p *process) freshID() string {
	d := rolled(p.w.seed, uint64(time.Since(p.w.tale.began)), p.name, "FreshID")
	return fmt.Sprintf("%s-%x", strings.ReplaceAll(p.name, "/", "-"), d.next())
}

// waits lets time pass. It ends early with the context.
func waits(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// passes lets time pass for the process, at least d. While its machine sleeps it does not go on. What it does without
// the context of its caller ends with the process.
func (p *process) passes(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errDead) })()
	err := waits(ctx, d)
	p.m.awake()
	if p.isDead() {
		return errDead
	}
	return err
}

// lingers lets a step take long now and then.
func (p *process) lingers(ctx context.Context, what, about string) error {
	if d := p.dice(what, about); d.chance(4) {
		return p.passes(ctx, d.between(time.Second, 40*time.Second))
	}
	return nil
}

// way is how an effect reaches the thing that it changes.
type way int

const (
	local way = iota // on the machine
	toAPI            // over the network to the API server
	toSAN            // over the storage network to the target
)

// effect lets an effect happen, or fail before it, or after it: then only its answer is lost. Between the
// moments in which it is asked for, happens and is answered, anything else may happen.
func (p *process) effect(ctx context.Context, by way, what, about string, happens func() error) error {
	do := doing{what, about}
	nth := p.again(do)
	d := rolled(p.w.seed, nth, p.name, what, about)
	p.w.plot.reaches(p, what)
	if err := p.passes(ctx, p.w.latency(&d, by, p.m)); err != nil {
		return err
	}
	if p.m.cutFrom(by) {
		_ = p.passes(ctx, d.between(time.Second, 5*time.Second))
		return errAway
	}
	hit, before := d.chance(p.w.rare(by)), d.chance(2)
	fault := p.w.strikes(strike{p.name, do, nth}, hit)
	if fault && before {
		p.w.tells(p.name, "fails: %s %s", what, about)
		return errFault
	}
	err := happens()
	p.w.plot.passed(p, what)
	if late := p.passes(ctx, p.w.latency(&d, by, p.m)); late != nil {
		return late
	}
	if fault {
		p.w.tells(p.name, "has no answer: %s %s is done", what, about)
		return errFault
	}
	if p.m.cutFrom(by) {
		_ = p.passes(ctx, d.between(time.Second, 5*time.Second))
		return errAway
	}
	return err
}
