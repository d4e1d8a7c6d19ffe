package limit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue lets streams begin, as many at a time as there are places.
type Queue struct {
	mu      sync.Mutex
	places  Places
	arrived uint64
	waiting []*entry
	running []Request
}

type entry struct {
	request Request
	begin   chan struct{}
}

// NewQueue returns an empty queue.
func NewQueue(places Places) *Queue { return &Queue{places: places} }

// Set changes the places. Streams that run beyond them run to their ends.
func (q *Queue) Set(places Places) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.places = places
	q.settle()
}

// Enter waits for a place and returns the function that gives it back. It sets Number and Since of the
// request. The error is the cause for which ctx ended.
func (q *Queue) Enter(ctx context.Context, r Request) (leave func(), err error) {
	e := q.join(r)
	// A request gets older though nothing else happens.
	older := time.AfterFunc(patience, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.settle()
	})
	defer older.Stop()
	select {
	case <-e.begin:
	case <-ctx.Done():
		if q.withdraw(e) {
			return nil, context.Cause(ctx)
		}
	}
	return sync.OnceFunc(func() { q.leave(e.request.Number) }), nil
}

// Waiting returns what each waiting request waits for, the next one first.
func (q *Queue) Waiting() []Answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order()
}

func (q *Queue) join(r Request) *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arrived++
	r.Number, r.Since = q.arrived, time.Now()
	e := &entry{request: r, begin: make(chan struct{})}
	q.waiting = append(q.waiting, e)
	q.settle()
	return e
}

// withdraw takes a request back, unless it has a place by now.
func (q *Queue) withdraw(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(w *entry) bool { return w == e })
	return len(q.waiting) < n
}

func (q *Queue) leave(number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = slices.DeleteFunc(q.running, func(r Request) bool { return r.Number == number })
	q.settle()
}

func (q *Queue) order() []Answer {
	requests := make([]Request, len(q.waiting))
	for i, e := range q.waiting {
		requests[i] = e.request
	}
	return Order(requests, q.running, q.places, time.Now())
}

// settle lets begin what may. The caller holds mu.
func (q *Queue) settle() {
	for _, a := range q.order() {
		if !a.Begin {
			continue
		}
		i := slices.IndexFunc(q.waiting, func(e *entry) bool { return e.request.Number == a.Number })
		e := q.waiting[i]
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.running = append(q.running, e.request)
		close(e.begin)
	}
}
