package keyed

import (
	"context"
	"errors"
	"sync"
)

// ErrLocked is TryLock's answer for a key that someone else holds.
var ErrLocked = errors.New("another operation on it is in progress")

// Locks is a set of locks by key. The zero value is ready to use.
type Locks[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*lock
}

// lock is held by whoever put a token into held. users counts its holder and
// those who wait; the last one to leave takes it out of the map.
type lock struct {
	held  chan struct{}
	users int
}

// Lock waits until key is free and takes it, or returns the cause of the
// context's end.
// unlock may be called more than once.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	if ctx.Err() != nil { // The select below would choose at random.
		return nil, context.Cause(ctx)
	}
	k := l.join(key)
	select {
	case k.held <- struct{}{}:
		return l.unlocker(key, k), nil
	case <-ctx.Done():
		l.leave(key, k)
		return nil, context.Cause(ctx)
	}
}

// TryLock takes key if it is free, and returns ErrLocked otherwise.
func (l *Locks[K]) TryLock(key K) (unlock func(), err error) {
	k := l.join(key)
	select {
	case k.held <- struct{}{}:
		return l.unlocker(key, k), nil
	default:
		l.leave(key, k)
		return nil, ErrLocked
	}
}

func (l *Locks[K]) unlocker(key K, k *lock) func() {
	return sync.OnceFunc(func() {
		<-k.held
		l.leave(key, k)
	})
}

func (l *Locks[K]) join(key K) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.locks[key]
	if !ok {
		if l.locks == nil {
			l.locks = map[K]*lock{}
		}
		k = &lock{held: make(chan struct{}, 1)}
		l.locks[key] = k
	}
	k.users++
	return k
}

func (l *Locks[K]) leave(key K, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.locks, key)
	}
}
