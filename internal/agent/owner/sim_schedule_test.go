package owner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"berth.dev/berth/internal/publish/staging"
)

// schedule runs tasks one at a time. A task gives way before each effect, and the schedule then
// chooses by its dice which task goes on: so anything may happen between two effects.
type schedule struct {
	dice  *rand.Rand
	tasks []*task
	now   *task
	back  chan struct{}
}

// task is a call that goes on in a process.
type task struct {
	of     *process
	what   string
	resume chan struct{}
	ended  bool
	// readAt is the revision that the API server had when the task read the record last.
	readAt int
}

// process is one life of an agent. Its memory dies with it.
type process struct {
	m    *machine
	dead bool
	busy map[string]bool // calls that a process makes one at a time
}

var errDead = errors.New("the process has died")

func newSchedule(seed uint64) *schedule {
	return &schedule{dice: rand.New(rand.NewPCG(seed, 1)), back: make(chan struct{})}
}

// begin begins a task, unless the process is at work on one of that name.
func (s *schedule) begin(p *process, what string, f func()) {
	if p.busy[what] {
		return
	}
	p.busy[what] = true
	t := &task{of: p, what: what, resume: make(chan struct{})}
	if s.now != nil {
		t.readAt = s.now.readAt // it carries out what that task decided
	}
	s.tasks = append(s.tasks, t)
	go func() {
		<-t.resume
		if !p.dead {
			f()
		}
		t.ended = true
		p.busy[what] = false
		s.back <- struct{}{}
	}()
}

// yield lets the schedule choose. It tells whether the process still lives.
func (s *schedule) yield() bool {
	t := s.now
	if t.of.dead {
		return false
	}
	s.back <- struct{}{}
	<-t.resume
	return !t.of.dead
}

// step lets one task that may run go on to its next effect.
func (s *schedule) step(may func(*task) bool) bool {
	var ready []int
	for i, t := range s.tasks {
		if may(t) {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 {
		return false
	}
	i := ready[s.dice.IntN(len(ready))]
	s.now = s.tasks[i]
	s.now.resume <- struct{}{}
	<-s.back
	if s.now.ended {
		s.tasks = append(s.tasks[:i], s.tasks[i+1:]...)
	}
	return true
}

// end lets the tasks of a process that has died come to their end.
func (s *schedule) end(p *process) {
	p.dead = true
	for s.step(func(t *task) bool { return t.of == p }) {
	}
}

// chance is true once in n times.
func (s *schedule) chance(n int) bool { return s.dice.IntN(n) == 0 }

// locks are the locks of a process, which give way while they wait.
type locks struct {
	s    *schedule
	held map[string]bool
	// none: nothing is locked.
	none bool
}

var _ staging.Locks = (*locks)(nil)

// Lock implements staging.Locks.
func (l *locks) Lock(ctx context.Context, key string) (func(), error) {
	if l.none {
		return func() {}, nil
	}
	for l.held[key] {
		if !l.s.yield() {
			return nil, errDead
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("waiting: %w", context.Cause(ctx))
		}
	}
	l.held[key] = true
	return func() { l.held[key] = false }, nil
}
