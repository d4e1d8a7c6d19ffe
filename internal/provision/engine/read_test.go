package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// unread returns a shelf with two boxes that were never read.
func unread() *shelf {
	s := &shelf{world: map[string][]string{"a": {"one"}, "b": {"two"}}}
	s.Engine = engine.New(engine.Config[*box]{Backend: s, Noun: "box", Now: time.Now})
	return s
}

func TestUnitsCountAsLoadedOnceAllWereAsked(t *testing.T) {
	s := unread()
	ctx, cancel := context.WithCancel(t.Context())
	s.reading = func(string) { cancel() }
	if err := s.LoadOnce(ctx); !errors.Is(err, context.Canceled) || s.loaded != 0 {
		t.Errorf("%v, loaded %d times", err, s.loaded)
	}
	reads := 0
	s.reading = func(string) { reads++ }
	for range 2 {
		s.ChangedAll()
		if err := s.LoadOnce(t.Context()); err != nil || s.loaded != 1 {
			t.Errorf("%v, loaded %d times", err, s.loaded)
		}
	}
	if reads != 2 {
		t.Errorf("%d units were read, want each once", reads)
	}
	if err := s.RefreshDue(t.Context()); err != nil || s.loaded != 1 {
		t.Errorf("%v, loaded %d times", err, s.loaded)
	}
}

func TestAReportWaitsForTheLockOfAUnitOnlyIfTheUnitWasNeverRead(t *testing.T) {
	for name, read := range map[string]bool{"it was never read": false, "it was read": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := unread()
				if read {
					if err := s.LoadOnce(t.Context()); err != nil {
						t.Fatal(err)
					}
					s.ChangedAll()
				} else if err := s.Discover(t.Context()); err != nil {
					t.Fatal(err)
				}
				unlock, err := s.UnitLocks.Lock(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Minute, unlock)
				began := time.Now()
				if err := s.RefreshDue(t.Context()); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(began) > 0; waited == read || s.IsDue("a") != read || s.IsDue("b") {
					t.Errorf("it waited is %v, a is due is %v, b is due is %v", waited, s.IsDue("a"), s.IsDue("b"))
				}
			})
		})
	}
}

func TestAReportThatFindsOutNothingFails(t *testing.T) {
	s := unread()
	s.hidden = errStuck
	if err := s.LoadOnce(t.Context()); !errors.Is(err, errStuck) || s.loaded != 0 {
		t.Errorf("%v, loaded %d times", err, s.loaded)
	}
}

func TestReportsAtTheSameTimeShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unread()
		if err := s.LoadOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.ChangedAll()
		s.reading = func(string) { <-time.After(time.Second) }
		for range 3 {
			s.Tasks.Go(func() {
				if err := s.RefreshDue(t.Context()); err != nil || s.IsDue("a") || s.IsDue("b") {
					t.Errorf("%v, a is due is %v, b is due is %v", err, s.IsDue("a"), s.IsDue("b"))
				}
			})
		}
		s.Tasks.Wait()
	})
}

// beingRead is a shelf of which something reads box a, for a second.
func beingRead(t *testing.T) *shelf {
	t.Helper()
	s := unread()
	if err := s.LoadOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.ChangedAll()
	s.reading = func(string) { <-time.After(time.Second) }
	s.Tasks.Go(func() { s.RefreshEach(t.Context(), []string{"a"}) })
	synctest.Wait()
	return s
}

// The watch reads a unit, and an own change makes the unit due meanwhile. A report right after it shows the change.
func TestAReportWaitsForAReadingThatBeganBeforeTheUnitBecameDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beingRead(t)
		s.With("a", func(b *box) { s.Touch(b) })
		for range 3 {
			s.Tasks.Go(func() {
				if err := s.RefreshDue(t.Context()); err != nil || s.IsDue("a") {
					t.Errorf("%v, it is due is %v", err, s.IsDue("a"))
				}
			})
		}
		s.Tasks.Wait()
	})
}

func TestAReaderThatGivesUpWaitingForAnotherLeavesTheUnitToItsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beingRead(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.Tasks.Go(func() { s.RefreshEach(ctx, []string{"a"}) })
		synctest.Wait()
		cancel()
		s.Tasks.Wait()
		unlock, err := s.UnitLocks.TryLock("a")
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		s.ChangedAll()
		s.RefreshEach(t.Context(), []string{"a"}) // returns: nobody counts as a reader any more
		if !s.IsDue("a") {
			t.Error("it was read while a change had it")
		}
	})
}

func TestReadersOfOneUnitReadItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unread()
		if err := s.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		reads := 0
		s.reading = func(string) { reads++; <-time.After(time.Second) }
		s.RefreshEach(t.Context(), []string{"a", "a", "a", "none"})
		if reads != 1 {
			t.Errorf("it was read %d times", reads)
		}
	})
}

func TestAnIDIsLookedForOnceMoreBeforeItIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		// found is after how many looks the id is found; 0 is never.
		found, finds  int
		unread        bool
		look, failing error
		want          error
	}{
		"it is known":                     {found: 1, finds: 1},
		"it is known, and cannot be used": {found: 1, finds: 1, failing: errStuck, want: errStuck},
		"it is found after another look":  {found: 2, finds: 2},
		"it is not there":                 {finds: 2, want: provision.ErrNotFound},
		"it may be in a unit never read":  {finds: 2, unread: true, want: provision.ErrUnavailable},
		"the tools fail":                  {finds: 1, look: errStuck, want: errStuck},
		"it is known, and the tools fail": {found: 1, finds: 1, look: errStuck},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, false, "one")
			if tc.unread {
				s.Lock()
				s.Put("b", &box{name: "b"})
				s.Unlock()
			}
			finds := 0
			err := s.Locate(t.Context(), "new", func() (bool, error) {
				finds++
				return finds == tc.found, tc.failing
			}, func(context.Context) error { return tc.look })
			if !errors.Is(err, tc.want) || finds != tc.finds {
				t.Errorf("%v after %d finds, want %v after %d", err, finds, tc.want, tc.finds)
			}
		})
	}
}

func TestAnIDIsNotLookedForInAnEngineThatCannotLoad(t *testing.T) {
	s := unread()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Locate(ctx, "new", func() (bool, error) { t.Error("it is looked for"); return false, nil }, func(context.Context) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
