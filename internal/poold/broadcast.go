package poold

import (
	"sync"

	"berth.dev/berth/internal/signal"
)

// broadcast passes each signal of one channel on to every listener, so that two
// watches do not take signals from each other.
type broadcast struct {
	mu        sync.Mutex
	listeners map[signal.Signal]struct{}
	// done is closed when no more signals come.
	done chan struct{}
}

func newBroadcast() *broadcast {
	return &broadcast{listeners: map[signal.Signal]struct{}{}, done: make(chan struct{})}
}

// run forwards signals until stop is closed.
func (b *broadcast) run(signals, stop <-chan struct{}) {
	defer close(b.done)
	for {
		select {
		case <-signals:
			b.send()
		case <-stop:
			return
		}
	}
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.listeners {
		c.Set()
	}
}

func (b *broadcast) join() (signals <-chan struct{}, leave func()) {
	c := signal.New()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, c)
	}
}
