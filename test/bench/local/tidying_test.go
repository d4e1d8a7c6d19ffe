package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPausesAreNotCountedAsWork(t *testing.T) {
	second := func(n float64) time.Time {
		return time.Unix(1_700_000_000, 0).Add(time.Duration(n * float64(time.Second)))
	}
	waited := stretch{second(10), second(15)}
	for name, tc := range map[string]struct {
		paused []stretch
		want   time.Duration
	}{
		"no pause":                                {nil, 5 * time.Second},
		"two pauses within the wait":              {[]stretch{{second(11), second(12)}, {second(13), second(13.5)}}, 3500 * time.Millisecond},
		"a pause that began before the wait":      {[]stretch{{second(9.25), second(10.25)}}, 4750 * time.Millisecond},
		"a pause that ended after the wait":       {[]stretch{{second(14.5), second(15.5)}}, 4500 * time.Millisecond},
		"a pause before the wait":                 {[]stretch{{second(8), second(9)}}, 5 * time.Second},
		"a pause over the whole wait":             {[]stretch{{second(9), second(16)}}, 0},
		"two pauses that cover the wait together": {[]stretch{{second(10), second(14)}, {second(11), second(15)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waited.without(tc.paused); got != tc.want {
				t.Errorf("it lasts %s, want %s", got, tc.want)
			}
		})
	}
}

func TestFollowUpWorkIsTimedFromTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work = 300 * time.Millisecond
		var d tidying
		for _, sinceTheFirst := range []time.Duration{0, 400 * time.Millisecond} {
			done := make(chan struct{})
			go func() {
				d.pause(t.Context())
				<-time.After(work)
				close(done)
			}()
			<-time.After(sinceTheFirst)
			d.wait = func() { <-done }
			if got := d.finish(); got != work {
				t.Errorf("%s after the first answer it took %s, want %s", sinceTheFirst, got, work)
			}
		}
	})
}

func TestFollowUpWorkIsTimedOnlyForSequentialOperations(t *testing.T) {
	for atOnce, want := range map[int]int{1: 2, 2: 0} {
		d, _, _ := playedZpools(t)
		s := played(zvol, dependent, both, d)
		s.atOnce = atOnce
		for _, p := range measureAll(t, s, d) {
			if len(p.Following) != want {
				t.Errorf("with %d at once %s is followed for %v, want %d rounds", atOnce, p.Operation, p.Following, want)
			}
		}
	}
}

func TestNothingIsMeasuredBeforeAllFromBeforeIsTidied(t *testing.T) {
	d, _, _ := playedZpools(t)
	through := newBerth(socketSide, d.remote, zvol)
	for n, operations := range [][]string{{create, clone}, {create}} {
		for _, operation := range operations {
			if err := through.do(t.Context(), operation, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := played(zvol, []string{snapshot}, []string{socketSide}, d)
	s.sides = map[string]side{socketSide: through}
	_, started, err := s.measure(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []processes{{Pool: zvol, Operation: snapshot, Operations: 2, Started: map[string]int{"zfs snapshot": 2}, Followed: map[string]int{"zfs list": 1}}}
	if diff := cmp.Diff(want, started); diff != "" {
		t.Errorf("after a clone, snapshots started (-want +got):\n%s", diff)
	}
}
