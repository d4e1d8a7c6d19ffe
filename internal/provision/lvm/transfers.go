package lvm

import (
	"context"
	"errors"
	"maps"
	"sync"

	"berth.dev/berth/internal/provision/lvm/group"
)

// transfers are the copies that are being filled. halt stops one that is to be deleted. The zero
// value is ready to use.
type transfers struct {
	mu      sync.Mutex
	running map[string]*transfer
	// halted counts, by copy, the calls of halt that are not released yet.
	halted map[string]int
}

type transfer struct {
	stop context.CancelCauseFunc
	done chan struct{}
}

var errHalted = errors.New("it is being deleted")

// begin returns the context of a transfer and what to call at its end; an error while it
// is halted.
func (t *transfers) begin(ctx context.Context, id string) (_ context.Context, end func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.halted[id] > 0 {
		return nil, nil, errHalted
	}
	ctx, stop := context.WithCancelCause(ctx)
	own := &transfer{stop: stop, done: make(chan struct{})}
	if t.running == nil {
		t.running = map[string]*transfer{}
	}
	t.running[id] = own
	return ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.running, id)
		close(own.done)
		stop(nil)
	}, nil
}

// halt stops the transfer to a copy, if there is one, and keeps others from beginning until
// release is called. An error is the context's, if that ends before the transfer does.
func (t *transfers) halt(ctx context.Context, id string) (release func(), err error) {
	t.mu.Lock()
	if t.halted == nil {
		t.halted = map[string]int{}
	}
	t.halted[id]++
	own := t.running[id]
	t.mu.Unlock()
	release = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.halted[id]--; t.halted[id] == 0 {
			delete(t.halted, id)
		}
	}
	if own == nil {
		return release, nil
	}
	own.stop(errHalted)
	select {
	case <-own.done:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// without takes the halted copies out of due.
func (t *transfers) without(due map[string]*group.Tries) map[string]*group.Tries {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(due, func(id string, _ *group.Tries) bool { return t.halted[id] > 0 })
	return due
}
