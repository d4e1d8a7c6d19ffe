package keyed

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestOneKeyIsHeldByOneAtATime(t *testing.T) {
	var (
		locks   Locks[string]
		inside  int
		entered int
		group   sync.WaitGroup
	)
	for range 64 {
		group.Go(func() {
			unlock, err := locks.Lock(t.Context(), "v")
			if err != nil {
				t.Errorf("locking: %v", err)
				return
			}
			defer unlock()
			if inside++; inside != 1 {
				t.Errorf("%d holders at once", inside)
			}
			entered++
			inside--
		})
	}
	group.Wait()
	if entered != 64 {
		t.Errorf("%d of 64 got the lock", entered)
	}
	if len(locks.locks) != 0 {
		t.Errorf("%d locks remain when nobody holds one", len(locks.locks))
	}
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	var locks Locks[string]
	unlock, err := locks.Lock(t.Context(), "blocked")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()

	other, err := locks.TryLock("free")
	if err != nil {
		t.Fatalf("a free key is refused while another is held: %v", err)
	}
	other()
}

func TestTryLockAnswersAtOnceWhenHeld(t *testing.T) {
	var locks Locks[string]
	unlock, err := locks.TryLock("v")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.TryLock("v"); !errors.Is(err, ErrLocked) {
		t.Errorf("second TryLock: %v, want ErrLocked", err)
	}
	unlock()
	unlock, err = locks.TryLock("v")
	if err != nil {
		t.Errorf("after unlocking: %v", err)
	}
	unlock()
}

func TestCancellationLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks[string]
		unlock, err := locks.Lock(t.Context(), "v")
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := locks.Lock(ctx, "v")
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("waiter got %v, want context.Canceled", err)
		}

		unlock()
		if len(locks.locks) != 0 {
			t.Errorf("the waiter that gave up is still counted")
		}
	})
}

func TestACancelledContextNeverTakesALock(t *testing.T) {
	var locks Locks[string]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locks.Lock(ctx, "v"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestUnlockingTwiceFreesOnce(t *testing.T) {
	var locks Locks[string]
	unlock, err := locks.TryLock("v")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	second, err := locks.TryLock("v")
	if err != nil {
		t.Fatal(err)
	}
	defer second()
	unlock()
	if _, err := locks.TryLock("v"); !errors.Is(err, ErrLocked) {
		t.Errorf("a stale unlock freed somebody else's lock")
	}
}

func TestAnExclusiveLockWaitsForAllSharersOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks[string]
		share := func() func() {
			unlock, err := locks.Share(t.Context(), "v")
			if err != nil {
				t.Fatal(err)
			}
			return unlock
		}
		first, second := share(), share()
		if _, err := locks.TryLock("v"); !errors.Is(err, ErrLocked) {
			t.Errorf("TryLock beside those who share it: %v, want ErrLocked", err)
		}
		var order []string
		var waiting sync.WaitGroup
		waiting.Go(func() {
			unlock, err := locks.Lock(t.Context(), "v")
			if err != nil {
				t.Errorf("locking: %v", err)
				return
			}
			order = append(order, "alone")
			unlock()
		})
		synctest.Wait()
		waiting.Go(func() {
			unlock := share()
			order = append(order, "shared")
			unlock()
		})
		synctest.Wait()
		first()
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%v while somebody shares it", order)
		}
		second()
		waiting.Wait()
		if len(order) != 2 || order[0] != "alone" {
			t.Errorf("it was taken by %v, want who came first", order)
		}
		if len(locks.locks) != 0 {
			t.Errorf("%d locks remain when nobody holds one", len(locks.locks))
		}
	})
}
