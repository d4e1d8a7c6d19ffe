package keyed

import (
	"context"
	"errors"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"
)

// ErrLocked is TryLock's error for a key that another operation holds.
var ErrLocked = errors.New("another operation on it is in progress")

// Locks is a set of locks by key. The zero value is ready to use.
type Locks[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*lock
}

// lock is held with its tokens: a shared holder has one of them, an exclusive holder has all.
// users counts the holders and the waiters; the last one to leave removes the lock from the map.
type lock struct {
	tokens *semaphore.Weighted
	users  int
}

const (
	one = 1
	all = math.MaxInt64
)

// Lock waits until key is free and takes it, or returns the cause of the
// context's end. unlock may be called more than once.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	return l.take(ctx, key, all)
}

// Share takes key in shared mode: several holders at once, but none while Lock holds it. A
// waiting Lock goes before calls of Share that come later.
func (l *Locks[K]) Share(ctx context.Context, key K) (unlock func(), err error) {
	return l.take(ctx, key, one)
}

func (l *Locks[K]) take(ctx context.Context, key K, tokens int64) (unlock func(), err error) {
	k := l.join(key)
	if k.tokens.Acquire(ctx, tokens) != nil {
		l.leave(key, k)
		return nil, context.Cause(ctx)
	}
	return l.unlocker(key, k, tokens), nil
}

// TryLock takes key if it is free, and returns ErrLocked otherwise.
func (l *Locks[K]) TryLock(key K) (unlock func(), err error) {
	k := l.join(key)
	if !k.tokens.TryAcquire(all) {
		l.leave(key, k)
		return nil, ErrLocked
	}
	return l.unlocker(key, k, all), nil
}

func (l *Locks[K]) unlocker(key K, k *lock, tokens int64) func() {
	return sync.OnceFunc(func() {
		k.tokens.Release(tokens)
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
		k = &lock{tokens: semaphore.NewWeighted(all)}
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
