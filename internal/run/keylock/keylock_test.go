package keylock

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestOneHolderPerKey(t *testing.T) {
	var l Locks
	var wg sync.WaitGroup
	counts := map[string]*int{"a": new(int), "b": new(int)}
	for range 100 {
		for key, n := range counts {
			wg.Go(func() {
				unlock, err := l.Lock(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				defer unlock()
				*n++ // the race detector watches
			})
		}
	}
	wg.Wait()
	if *counts["a"] != 100 || *counts["b"] != 100 {
		t.Errorf("counted %d and %d, want 100 each", *counts["a"], *counts["b"])
	}
	if len(l.locks) != 0 {
		t.Errorf("%d locks are left behind", len(l.locks))
	}
}

func TestWaiterLeavesWhenItsContextEnds(t *testing.T) {
	var l Locks
	unlock, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter got %v, want its context's error", err)
	}
	unlock()
	if unlock, err = l.Lock(t.Context(), "a"); err != nil {
		t.Fatalf("the lock was lost with the waiter: %v", err)
	}
	unlock()
}

func TestCallerThatIsGoneTakesNoLockEvenIfItIsFree(t *testing.T) {
	var l Locks
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if _, err := l.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}
	}
}

func TestUnlockingTwiceGivesBackOnce(t *testing.T) {
	var l Locks
	unlock, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	unlock()
	if len(l.locks) != 0 {
		t.Error("the lock is left behind")
	}
}

func TestAnotherKeyIsNotHeldUp(t *testing.T) {
	var l Locks
	unlock, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	other, err := l.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
}
