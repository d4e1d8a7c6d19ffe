package run

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Tasks carries operations to their end even if their callers give up. The zero value
// is ready to use; its owner calls Wait before it ends. Unlike with a sync.WaitGroup,
// new operations may begin while Wait waits.
type Tasks struct {
	mu      sync.Mutex
	running int
	// idle is closed when the last operation ends; nil while no Wait is waiting.
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

// Go runs an operation in the background. Only Wait waits for it.
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
// first. The operation itself sees a context that does not end. It must bring its
// owner's state up to date before it returns, since its caller may have left without
// its result. It must also release the locks that its caller took for it. Do always
// starts the operation, so that those locks are released.
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
