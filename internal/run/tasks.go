package run

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Tasks carries operations to their end whatever becomes of their callers. The
// zero value is ready to use; its owner calls Wait before it goes.
type Tasks struct{ running sync.WaitGroup }

// Wait returns when no operation is running.
func (t *Tasks) Wait() { t.running.Wait() }

// Do runs an operation and waits for it or for the end of ctx, whichever comes
// first. The operation itself sees a context that does not end: it is responsible
// for bringing its owner's state up to date before it returns, since nobody may be
// left to hear its result, and for giving back the locks its caller took for it. It
// always begins, so that those locks are given back.
func Do[T any](ctx context.Context, t *Tasks, operation func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	t.running.Go(func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			done <- r
		}()
		r.value, r.err = operation(context.WithoutCancel(ctx))
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
