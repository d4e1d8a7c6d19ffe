package pooled

import (
	"context"
	"sync"
	"time"

	"berth.dev/berth/internal/replicate/limit"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

const (
	// answers is how long a stream keeps its place to receive while the sender has none for it.
	answers = 10 * time.Second
	// returns is how long a sender keeps its place for a stream that has none to receive any more. It is longer than
	// answers: a place that another stream keeps in vain is given back by then.
	returns = 15 * time.Second
	// hung is how long a stream keeps its place while no byte of it moves. Each end gives a stream up before, so this one
	// waits for a pool that hangs and for processes that nothing can end. It stays until the pool is back, and others
	// go on: the places are the node's, and its other pools work.
	hung = 15 * time.Minute
	// standing is how many streams of this node wait without a place at one sender, beside those that a pod waits for.
	// The other connections that the sender allows are for streams that have a place, and for pods.
	standing = connections / 2
)

// turn is the place to receive of one stream. A place that waits for a sender is idle, and another sender may have
// something for it. So a stream that waits for long gives its place back, stays in the sender's line, and takes a place
// again when the sender has one. If it asked anew
// instead, the sender could not tell which stream has waited longest.
type turn struct {
	queue   *limit.Queue
	lines   *lines
	request limit.Request
	// giveUp ends the stream.
	giveUp context.CancelCauseFunc

	mu sync.Mutex
	// leave gives the place back, nil if the stream has none.
	leave func()
	// quit takes the stream out of the lines, nil if it is in none.
	quit func()
	// over: it does not wait any more.
	over bool
	// watch gives the place back when the stream has not moved for long.
	watch *time.Timer
}

// enter waits for a place.
func (t *turn) enter(ctx context.Context) (err error) {
	if t.leave, err = t.queue.Enter(ctx, t.request); err == nil {
		t.watch = time.AfterFunc(hung, t.hangs)
	}
	return err
}

// wait is called when the sender has not answered for long.
func (t *turn) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	quit, keeps := t.lines.join(t.request)
	t.quit = quit
	switch {
	case quit == nil:
		t.giveUp(wire.Errorf(wire.Busy, "as many streams as may wait for node %s", t.request.Peer))
	case !keeps:
		t.leave()
		t.leave = nil
	}
}

// begin makes sure of a place when the sender has one.
func (t *turn) begin(ctx context.Context) (err error) {
	if t.rest() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, returns)
	defer cancel()
	r := t.request
	r.Class = limit.Rescue // the sender's place is idle meanwhile
	leave, err := t.queue.Enter(ctx, r)
	if err != nil {
		return &wire.Error{Reason: wire.Busy, Message: "node " + r.Peer + " had a place, and this node had none", Cause: err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave = leave
	return nil
}

// moves is told that the stream began, or has moved.
func (t *turn) moves() { t.watch.Reset(hung) }

// hangs gives the place back of a stream that has not moved for long.
func (t *turn) hangs() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leave != nil {
		t.leave()
	}
}

// rest ends the wait, and says whether the stream has a place.
func (t *turn) rest() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quit != nil {
		t.quit()
	}
	t.quit, t.over = nil, true
	return t.leave != nil
}

func (t *turn) end() {
	t.watch.Stop()
	if t.rest() {
		t.leave()
	}
}

// taking is a sink whose streams have a place when they begin.
type taking struct {
	stream.Sink
	turn *turn
}

// Begin implements stream.Sink.
func (s taking) Begin(ctx context.Context, h stream.Header) (stream.Intake, error) {
	if err := s.turn.begin(ctx); err != nil {
		return nil, err
	}
	s.turn.moves()
	return s.Sink.Begin(ctx, h)
}

// lines are the streams of a node that have waited for their senders for long.
type lines struct {
	mu sync.Mutex
	// kept: one of them has kept its place. Otherwise two nodes that are always busy would hardly ever have a place at
	// the same time. If more did, slow senders would keep the node from all others.
	kept bool
	// standing is how many have given theirs back, by the sender.
	standing map[string]int
}

// join returns what takes a stream out of the lines, nil if there is no room for it, and whether it keeps its place.
func (l *lines) join(r limit.Request) (quit func(), keeps bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch sender := r.Peer; {
	case !l.kept:
		l.kept = true
		return func() { l.change(func() { l.kept = false }) }, true
	case r.Class == limit.Rescue || l.standing[sender] < standing:
		l.standing[sender]++
		return func() { l.change(func() { l.standing[sender]-- }) }, false
	}
	return nil, false
}

func (l *lines) change(to func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to()
}
