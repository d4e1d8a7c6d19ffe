// Package runtest plays commands in tests. Script is a run.Runner whose programs are Go
// functions. The rest helps fakes that are Runners themselves.
package runtest

import (
	"context"
	"fmt"
	"sync"

	"berth.dev/berth/internal/run"
)

// Program plays a command: it gets the arguments and returns standard output. For a
// change its context never ends.
type Program func(ctx context.Context, c run.Command) ([]byte, error)

// Script is a Runner that starts no process. Handle sets the Program of each
// operation; an operation without one fails like a missing program.
type Script struct {
	mu       sync.Mutex
	programs map[string]Program
	calls    []run.Command
}

var _ run.Runner = (*Script)(nil)

// Handle makes a program play an operation from now on.
func (s *Script) Handle(operation string, p Program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.programs == nil {
		s.programs = map[string]Program{}
	}
	s.programs[operation] = p
}

// Calls returns the commands so far.
func (s *Script) Calls() []run.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]run.Command(nil), s.calls...)
}

// Query implements run.Runner.
func (s *Script) Query(ctx context.Context, c run.Command) ([]byte, error) { return s.play(ctx, c) }

// Change implements run.Runner.
func (s *Script) Change(c run.Command) ([]byte, error) {
	return s.play(context.Background(), c) //nolint:forbidigo // a change has no context
}

func (s *Script) play(ctx context.Context, c run.Command) ([]byte, error) {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	p := s.programs[c.Operation]
	s.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("running %s: nothing plays it", c.Operation)
	}
	return p(ctx, c)
}

// Exit returns the error of a command that ended with a code and a message.
func Exit(c run.Command, code int, stderr string) error {
	return &run.ExitError{Command: c, Code: code, Stderr: stderr}
}

// Fixed returns a Program that always prints the same text.
func Fixed(stdout string) Program {
	return func(context.Context, run.Command) ([]byte, error) { return []byte(stdout), nil }
}
