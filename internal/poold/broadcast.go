package poold

import "sync"

// broadcast hands each signal of one channel to every listener, so that two
// watches do not take each other's.
type broadcast struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
	// done is closed when no more signals come.
	done chan struct{}
}

func newBroadcast() *broadcast {
	return &broadcast{listeners: map[chan struct{}]struct{}{}, done: make(chan struct{})}
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
		select {
		case c <- struct{}{}:
		default: // one is waiting there already
		}
	}
}

func (b *broadcast) join() (signals <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, c)
	}
}
