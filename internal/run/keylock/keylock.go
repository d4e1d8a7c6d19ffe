package keylock

import (
	"context"
	"sync"
)

// Locks holds one lock per key. The zero value is ready to use; a key costs
// memory only while someone holds it or waits for it.
type Locks struct {
	mu    sync.Mutex
	locks map[string]*lock
}

type lock struct {
	// token holds one value while the lock is free.
	token chan struct{}
	// users hold the lock or wait for it.
	users int
}

// Lock takes the lock of a key and returns what gives it back, or the cause of
// ctx's end.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	if ctx.Err() != nil { // the select below would choose at random
		return nil, context.Cause(ctx)
	}
	k := l.join(key)
	select {
	case <-k.token:
		return sync.OnceFunc(func() {
			k.token <- struct{}{}
			l.leave(key)
		}), nil
	case <-ctx.Done():
		l.leave(key)
		return nil, context.Cause(ctx)
	}
}

func (l *Locks) join(key string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[key]
	if k == nil {
		k = &lock{token: make(chan struct{}, 1)}
		k.token <- struct{}{}
		if l.locks == nil {
			l.locks = map[string]*lock{}
		}
		l.locks[key] = k
	}
	k.users++
	return k
}

func (l *Locks) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[key]
	if k.users--; k.users == 0 {
		delete(l.locks, key)
	}
}
