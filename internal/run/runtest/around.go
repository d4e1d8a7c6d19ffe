package runtest

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/run"
)

// Around wraps a command that is played: it may wait, fail in place of the command, or fail
// after the command did its work. A nil Around adds nothing.
type Around func(c run.Command, do func() ([]byte, error)) ([]byte, error)

// Play plays a command, wrapped by a.
func (a Around) Play(c run.Command, play func(run.Command) ([]byte, error)) ([]byte, error) {
	if a == nil {
		return play(c)
	}
	return a(c, func() ([]byte, error) { return play(c) })
}

// Only wraps the commands of one operation and no others.
func Only(operation string, a Around) Around {
	return func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if c.Operation == operation {
			return a(c, do)
		}
		return do()
	}
}

// Query plays a command for a caller that stops waiting for it when ctx ends.
func Query(ctx context.Context, c run.Command, play func(run.Command) ([]byte, error)) ([]byte, error) {
	type result struct {
		out []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := play(c)
		done <- result{out, err}
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s stopped: %w", c.Operation, context.Cause(ctx))
	}
}
