package limit_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/replicate/limit"
)

var (
	now    = time.Unix(1e9, 0)
	places = limit.Places{Send: 2, Receive: 2, Peer: 2}
)

func request(number uint64, volume, peer string, class limit.Class) limit.Request {
	return limit.Request{Number: number, Volume: volume, Peer: peer, Class: class, Since: now}
}

func TestOrderGivesPlaces(t *testing.T) {
	old := request(9, "old", "beta", limit.Follow)
	old.Since = now.Add(-time.Hour)
	in := request(8, "v", "beta", limit.Follow)
	in.Direction = limit.Receive
	tests := map[string]struct {
		waiting, running []limit.Request
		places           limit.Places
		// want are the numbers that begin, and reasons those of all in order.
		want    []uint64
		reasons []string
	}{
		"to the first that came": {
			waiting: []limit.Request{request(2, "b", "beta", limit.Follow), request(1, "a", "beta", limit.Follow), request(3, "c", "gamma", limit.Follow)},
			want:    []uint64{1, 3}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonPlaceFree, limit.ReasonNodeBusy},
		},
		"to the more important": {
			waiting: []limit.Request{request(1, "a", "beta", limit.Follow), request(2, "b", "beta", limit.Build), request(3, "c", "beta", limit.Rescue)},
			want:    []uint64{3, 2}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonPlaceFree, limit.ReasonPeerBusy},
		},
		"to the peer with fewer streams": {
			waiting: []limit.Request{request(2, "b", "beta", limit.Follow), request(3, "c", "gamma", limit.Follow)},
			running: []limit.Request{request(1, "a", "beta", limit.Follow)},
			want:    []uint64{3}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonNodeBusy},
		},
		"to one that has waited for an hour": {
			waiting: []limit.Request{request(1, "a", "beta", limit.Build), old},
			places:  limit.Places{Send: 1, Receive: 1, Peer: 1},
			want:    []uint64{9}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonPeerBusy},
		},
		"to a stream that a pod waits for, whoever has waited": {
			waiting: []limit.Request{request(10, "a", "beta", limit.Rescue), old},
			places:  limit.Places{Send: 1, Receive: 1, Peer: 1},
			want:    []uint64{10}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonPeerBusy},
		},
		"to one stream of a volume with a node": {
			waiting: []limit.Request{request(2, "a", "beta", limit.Follow), request(3, "a", "gamma", limit.Follow)},
			running: []limit.Request{request(1, "a", "beta", limit.Follow)},
			want:    []uint64{3}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonVolumeBusy},
		},
		"to each direction": {
			waiting: []limit.Request{in, request(9, "c", "beta", limit.Follow)},
			running: []limit.Request{request(1, "a", "gamma", limit.Follow), request(2, "b", "delta", limit.Follow)},
			want:    []uint64{8}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonNodeBusy},
		},
		"to each direction of a node": {
			waiting: []limit.Request{in, request(9, "c", "beta", limit.Follow)},
			running: []limit.Request{request(1, "a", "beta", limit.Follow), request(2, "b", "beta", limit.Follow)},
			places:  limit.Places{Send: 3, Receive: 1, Peer: 2},
			want:    []uint64{8}, reasons: []string{limit.ReasonPlaceFree, limit.ReasonPeerBusy},
		},
		"to nobody": {
			waiting: []limit.Request{request(1, "a", "beta", limit.Rescue)}, places: limit.Places{Peer: 1},
			reasons: []string{limit.ReasonNodeBusy},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.places == (limit.Places{}) {
				test.places = places
			}
			var begin []uint64
			var reasons []string
			for _, a := range limit.Order(test.waiting, test.running, test.places, now) {
				reasons = append(reasons, a.Reason)
				if a.Begin {
					begin = append(begin, a.Number)
				}
				if a.Message == "" {
					t.Errorf("the answer to %d says nothing", a.Number)
				}
			}
			if !slices.Equal(begin, test.want) || !slices.Equal(reasons, test.reasons) {
				t.Errorf("%v begin, because of %v; want %v and %v", begin, reasons, test.want, test.reasons)
			}
		})
	}
}

func TestAQueueLetsAsManyBeginAsItHasPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := limit.NewQueue(limit.Places{Send: 2, Receive: 1, Peer: 9})
		begun := make(chan func(), 10)
		for _, volume := range []string{"a", "b", "c", "d"} {
			go func() {
				leave, err := q.Enter(t.Context(), limit.Request{Volume: volume, Peer: "beta"})
				if err != nil {
					t.Error(err)
				}
				begun <- leave
			}()
		}
		synctest.Wait()
		if len(begun) != 2 || len(q.Waiting()) != 2 {
			t.Fatalf("%d streams have begun and %d wait", len(begun), len(q.Waiting()))
		}
		leave := <-begun
		leave()
		leave() // twice is once
		synctest.Wait()
		if len(begun) != 2 {
			t.Fatalf("%d streams have begun after one has ended", len(begun)+1)
		}
		q.Set(limit.Places{Send: 9, Receive: 1, Peer: 9})
		synctest.Wait()
		if len(begun) != 3 || len(q.Waiting()) != 0 {
			t.Errorf("%d streams run with places for nine", len(begun))
		}
	})
}

func TestARequestThatIsGivenUpLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := limit.NewQueue(limit.Places{Send: 1, Peer: 1})
		leave, err := q.Enter(t.Context(), limit.Request{Volume: "a", Peer: "beta"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := q.Enter(ctx, limit.Request{Volume: "b", Peer: "beta"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that was given up says %v", err)
		}
		leave()
		if _, err := q.Enter(t.Context(), limit.Request{Volume: "c", Peer: "beta"}); err != nil || len(q.Waiting()) > 0 {
			t.Errorf("%v, and %d wait", err, len(q.Waiting()))
		}
	})
}

// Copies are built all day, half an hour each. A peer that has heard nothing but Alive for ten minutes asks anew.
func TestAStreamThatFollowsDoesNotWaitForEverWhileCopiesAreBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := limit.NewQueue(limit.Places{Send: 1, Receive: 1, Peer: 2})
		day, end := context.WithTimeout(t.Context(), 24*time.Hour)
		defer end()
		asks := func(volume, peer string, class limit.Class, lasts time.Duration) *atomic.Int64 {
			begun := new(atomic.Int64)
			go func() {
				for day.Err() == nil {
					ctx, cancel := context.WithTimeout(day, 10*time.Minute)
					if leave, err := q.Enter(ctx, limit.Request{Volume: volume, Peer: peer, Class: class}); err == nil {
						begun.Add(1)
						<-time.After(lasts)
						leave()
					}
					cancel()
					<-time.After(5 * time.Second)
				}
			}()
			return begun
		}
		asks("a", "beta", limit.Build, 33*time.Minute)
		asks("b", "gamma", limit.Build, 33*time.Minute)
		asks("c", "gamma", limit.Build, 33*time.Minute)
		followed := asks("d", "delta", limit.Follow, time.Second)
		<-day.Done()
		if n := followed.Load(); n < 11 {
			t.Errorf("a place was free about 44 times, and the stream that follows got it %d times", n)
		}
		<-time.After(time.Hour)
	})
}

func TestAShareOfTheClustersLimit(t *testing.T) {
	for _, test := range []struct {
		cluster int64
		senders int
		want    int64
	}{{0, 5, 0}, {100, 0, 100}, {100, 1, 100}, {100, 3, 33}, {2, 5, 1}, {-1, 1, 0}} {
		if got := limit.Share(test.cluster, test.senders); got != test.want {
			t.Errorf("the share of one of %d in %d is %d, want %d", test.senders, test.cluster, got, test.want)
		}
	}
}

const mib = 1 << 20

// spent is how long it takes to send 10 MiB in frames.
func spent(t *testing.T, g *limit.Gate) time.Duration {
	t.Helper()
	begin := time.Now()
	for range 40 {
		if err := g.Wait(t.Context(), mib/4); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begin).Round(time.Second)
}

func TestTheLowestOfThreeRatesHolds(t *testing.T) {
	tests := map[string]struct {
		volume int64
		rates  limit.Rates
		want   time.Duration
	}{
		"no limit":      {want: 0},
		"the volume's":  {volume: mib, rates: limit.Rates{Node: 5 * mib, Cluster: 5 * mib}, want: 10 * time.Second},
		"the node's":    {volume: 5 * mib, rates: limit.Rates{Node: mib, Cluster: 5 * mib}, want: 10 * time.Second},
		"the cluster's": {volume: 5 * mib, rates: limit.Rates{Node: 5 * mib, Cluster: mib}, want: 10 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limit.NewLimits()
				l.Set(test.rates)
				if got := spent(t, l.Gate(test.volume)); got != test.want {
					t.Errorf("10 MiB took %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestTwoStreamsShareANodesRateEqually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.NewLimits()
		l.Set(limit.Rates{Node: mib})
		times := make(chan time.Duration, 2)
		for range 2 {
			go func() { times <- spent(t, l.Gate(0)) }()
		}
		if a, b := <-times, <-times; a < 19*time.Second || b > 20*time.Second {
			t.Errorf("two streams of 10 MiB took %s and %s at 1 MiB/s", a, b)
		}
	})
}

func TestAChangedRateIsNoticedByAStreamThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.NewLimits()
		g := l.Gate(1) // a byte in a second
		go func() {
			<-time.After(time.Minute)
			g.Set(mib)
		}()
		if got := spent(t, g); got < time.Minute || got > time.Minute+11*time.Second {
			t.Errorf("10 MiB took %s", got)
		}
	})
}

func TestAStreamThatIsGivenUpDoesNotWaitForItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := limit.NewLimits().Gate(1).Wait(ctx, mib); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait ended with %v", err)
		}
	})
}
