package engine

import (
	"context"
	"errors"
	"time"

	"berth.dev/berth/internal/run"
)

// ErrNoAnswer says that the tools did not answer in time.
var ErrNoAnswer = errors.New("no answer in time")

// patience is how long a query that was killed may take to end.
const patience = time.Second

// Ask runs a query, for limit at most. The kernel does not let go of a process that waits for a
// disk which does not answer, so Ask leaves such a process behind. It then calls left. When the
// process ends, it calls the function that left returned.
func Ask(ctx context.Context, r run.Runner, c run.Command, limit time.Duration, left func() (ended func())) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrNoAnswer)
	defer cancel()
	if ctx.Err() != nil { // the caller is gone: a fast answer must not hide that
		return nil, context.Cause(ctx)
	}
	type result struct {
		out []byte
		err error
	}
	answer := make(chan result, 1)
	go func() {
		out, err := r.Query(ctx, c)
		answer <- result{out, err}
	}()
	select {
	case got := <-answer:
		return got.out, got.err
	case <-ctx.Done():
	}
	select {
	case got := <-answer:
		return got.out, got.err
	case <-time.After(patience):
		ended := left()
		go func() {
			<-answer
			ended()
		}()
		return nil, context.Cause(ctx)
	}
}
