package shell

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	ctx  context.Context
	stop context.CancelFunc

	mu     sync.Mutex
	dead   bool
	counts map[string]uint64
}

func (m *machine) begins(kind string) *process {
	m.lives++
	p := &process{w: m.w, m: m, kind: kind, name: fmt.Sprintf("%s/%s-%d", m.name, kind, m.lives), counts: map[string]uint64{}}
	p.ctx, p.stop = context.WithCancel(m.w.ctx)
	return p
}

// dies ends the process. Its goroutines find out at their next effect.
func (p *process) dies() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.stop()
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// dice are those of the next time that the process does something.
func (p *process) dice(what string) dice {
	p.mu.Lock()
	p.counts[what]++
	n := p.counts[what]
	p.mu.Unlock()
	return rolled(p.w.seed, p.name+" "+what, n)
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

// passes lets time pass for the process, at least d. While its machine sleeps it does not go on.
func (p *process) passes(ctx context.Context, d time.Duration) error {
	err := waits(ctx, d)
	p.m.awake()
	if p.isDead() {
		return errDead
	}
	return err
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
func (p *process) effect(ctx context.Context, by way, what string, happens func() error) error {
	d := p.dice(what)
	p.w.plot.reaches(p, what)
	if err := p.passes(ctx, p.w.latency(&d, by, p.m)); err != nil {
		return err
	}
	if p.m.cutFrom(by) {
		_ = p.passes(ctx, d.between(time.Second, 5*time.Second))
		return errAway
	}
	fault := p.w.troubled() && d.chance(p.w.rare(by))
	if fault && d.chance(2) {
		return errFault
	}
	err := happens()
	p.w.plot.passed(p, what)
	if late := p.passes(ctx, p.w.latency(&d, by, p.m)); late != nil {
		return late
	}
	if fault {
		return errFault
	}
	if p.m.cutFrom(by) {
		_ = p.passes(ctx, d.between(time.Second, 5*time.Second))
		return errAway
	}
	return err
}
