package engine_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision/engine"
)

// free says whether no change holds any lock.
func (s *shelf) free(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if unlock, err := s.IDLocks.TryLock(id); err != nil {
			t.Errorf("%s is locked still", id)
		} else {
			unlock()
		}
	}
	if unlock, err := s.UnitLocks.TryLock("a"); err != nil {
		t.Error("the unit is locked still")
	} else {
		unlock()
	}
}

func TestAChangeThatGetsNoLockIsNotMadeAndHoldsNone(t *testing.T) {
	for name, held := range map[string]func(ctx context.Context, s *shelf) (func(), error){
		"the unit is locked":       func(ctx context.Context, s *shelf) (func(), error) { return s.UnitLocks.Lock(ctx, "a") },
		"its own id is locked":     func(ctx context.Context, s *shelf) (func(), error) { return s.IDLocks.Lock(ctx, "new") },
		"the last other is locked": func(ctx context.Context, s *shelf) (func(), error) { return s.IDLocks.Lock(ctx, "other") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t, false)
				unlock, err := held(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				c, asked := s.put("new", func() error { t.Error("it was made"); return nil }), 0
				c.Beside = func() engine.Beside {
					if asked++; name == "the unit is locked" {
						return engine.Beside{Alters: "other"}
					}
					return engine.Beside{Alters: "other", Keeps: []string{"one", "two"}[asked%2]}
				}
				if name == "the unit is locked" {
					c.ID = "first"
				}
				if err := s.CarryOut(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				s.Tasks.Wait()
				unlock()
				s.free(t, "first", "new", "other", "one", "two")
			})
		})
	}
}

func TestChangesShareWhatTheyKeepAndWaitForWhatTheyAlter(t *testing.T) {
	for name, tc := range map[string]struct {
		id     string
		beside engine.Beside
		want   int
	}{
		"they keep the same snapshot":      {beside: engine.Beside{Keeps: "shared"}, want: 3},
		"they alter the same snapshot":     {beside: engine.Beside{Alters: "shared"}, want: 1},
		"they are about the same snapshot": {id: "shared", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t, true)
				if most := s.atOnce(t, tc.id, tc.beside); most != tc.want {
					t.Errorf("%d ran at the same time, want %d", most, tc.want)
				}
			})
		})
	}
}

// atOnce makes three changes of a second each, of one id or of three, and returns how many ran at
// the same time.
func (s *shelf) atOnce(t *testing.T, id string, beside engine.Beside) (most int) {
	running := 0
	count := func(more int) {
		s.Lock()
		defer s.Unlock()
		running += more
		most = max(most, running)
	}
	for _, thing := range []string{"one", "two", "three"} {
		s.Tasks.Go(func() {
			c := s.put(thing, func() error {
				count(1)
				<-time.After(time.Second)
				count(-1)
				return nil
			})
			c.ID, c.Beside = cmp.Or(id, thing), func() engine.Beside { return beside }
			if err := s.CarryOut(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	s.Tasks.Wait()
	return most
}

func TestTheIDsOfAChangeAreThoseThatItHasOnceTheyAreLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, false)
		c := s.put("new", func() error {
			if unlock, err := s.IDLocks.TryLock("before"); err != nil {
				t.Error("an id is locked that the change is not about")
			} else {
				unlock()
			}
			if _, err := s.IDLocks.TryLock("after"); err == nil {
				t.Error("an id is free that the change is about")
			}
			return nil
		})
		asked := 0
		c.Beside = func() engine.Beside {
			if asked++; asked == 1 {
				return engine.Beside{Alters: "before"}
			}
			return engine.Beside{Alters: "after"}
		}
		if err := s.CarryOut(t.Context(), c); err != nil {
			t.Error(err)
		}
		s.free(t, "new", "before", "after")
	})
}

// Two changes that wait for each other's ids would wait for ever.
func TestAChangeThatWaitsForAnIDHoldsNoLaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, false)
		unlock, err := s.IDLocks.Lock(t.Context(), "earlier")
		if err != nil {
			t.Fatal(err)
		}
		c := s.put("new", func() error { return nil })
		c.Beside = func() engine.Beside { return engine.Beside{Alters: "earlier"} }
		s.Tasks.Go(func() { _ = s.CarryOut(t.Context(), c) })
		synctest.Wait()
		s.free(t, "new")
		unlock()
		s.Tasks.Wait()
	})
}

func TestAChangeThatLooksAgainGivesUpTheUnitMeanwhileIfOthersRunInIt(t *testing.T) {
	for name, together := range map[string]bool{"together": true, "one after the other": false} {
		t.Run(name, func(t *testing.T) { looksAgain(t, together) })
	}
}

func looksAgain(t *testing.T, together bool) {
	s := newShelf(t, together)
	s.look = func() {
		unlock, err := s.UnitLocks.TryLock("a")
		if (err == nil) != together {
			t.Errorf("locking the unit while it is read: %v", err)
		}
		if err == nil {
			unlock()
		}
	}
	s.cleared = true
	tries := 0
	err := s.CarryOut(t.Context(), s.put("new", func() error {
		if tries++; tries == 1 {
			return errStuck
		}
		if _, err := s.UnitLocks.TryLock("a"); err == nil {
			t.Error("the unit is not locked while it is changed")
		}
		return nil
	}))
	if err != nil || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
	s.free(t, "new")
	s.With("a", func(b *box) {
		if !slices.Equal(b.things, []string{"new"}) {
			t.Errorf("it holds %q", b.things)
		}
	})
}
