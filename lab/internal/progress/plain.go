package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Plain writes one line when a step starts and one when it ends. Notes are
// left out: in a log they would repeat the same words many times.
type Plain struct {
	mu  sync.Mutex
	w   io.Writer
	now func() time.Time
}

// NewPlain returns a reporter for pipes and files that reads the time from now.
func NewPlain(w io.Writer, now func() time.Time) *Plain {
	return &Plain{w: w, now: now}
}

// Step implements [Reporter].
func (p *Plain) Step(name string) Step {
	p.printf("... %s\n", name)
	return &plainStep{plain: p, name: name, start: p.now()}
}

func (p *Plain) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format, args...)
}

type plainStep struct {
	plain *Plain
	name  string
	start time.Time
	once  sync.Once
}

func (s *plainStep) Note(string, ...any) {}

func (s *plainStep) Done(err error) {
	s.once.Do(func() {
		elapsed := seconds(s.plain.now().Sub(s.start))
		if err != nil {
			// The error itself is printed once, by main, with its context.
			s.plain.printf("FAILED %s (%s)\n", s.name, elapsed)
			return
		}
		s.plain.printf("done %s (%s)\n", s.name, elapsed)
	})
}
