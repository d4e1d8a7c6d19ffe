package run

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Tasks carries operations to their end whatever becomes of their callers. The
// zero value is ready to use; its owner calls Wait before it goes. Unlike a
// sync.WaitGroup it may be waited for while others begin.
type Tasks struct {
	mu      sync.Mutex
	running int
	// idle is closed when nothing runs any more; nil while nobody waits.
	idle chan struct{}
}

// Wait returns when no operation is running.
func (t *Tasks) Wait() {
	t.mu.Lock()
	if t.running == 0 {
		t.mu.Unlock()
		return
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	<-idle
}

// Go runs an operation that nobody waits for but Wait.
func (t *Tasks) Go(operation func()) {
	t.mu.Lock()
	t.running++
	t.mu.Unlock()
	go func() {
		defer t.end()
		operation()
	}()
}

func (t *Tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

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
	t.Go(func() {
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
