package oversight

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
)

func TestNoContactBeginsWithoutAListAndAWatch(t *testing.T) {
	for name, refuse := range map[string]func(l *leases, is bool){
		"no list":  func(l *leases, is bool) { l.mu.Lock(); defer l.mu.Unlock(); l.unlisted = is },
		"no watch": func(l *leases, is bool) { l.mu.Lock(); defer l.mu.Unlock(); l.unwatched = is },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared()), func(w *world) {
				refuse(w.leases, true)
				r := w.controller()
				w.passes(10 * time.Second)
				if got := r.Contact.look(suspect{}, nil, nil).watching; got != 0 {
					t.Errorf("it has watched for %s", got)
				}
				refuse(w.leases, false)
				w.passes(10 * time.Second)
				if got := r.Contact.look(suspect{}, nil, nil).watching; got < 8*time.Second {
					t.Errorf("and then for %s", got)
				}
			})
		})
	}
}

func TestTheEndOfALeaseIsNoRenewalAndItsBeginIsOne(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := w.controller()
		w.passes(time.Minute)
		w.dead["n1"] = true
		w.passes(10 * time.Second)
		w.leases.deletes(v1alpha1.GuardLeasePrefix + "n1")
		w.leases.put(guardLease("n4", w.storage, time.Minute))
		w.waits(10 * time.Second)
		for node, want := range map[string]time.Duration{"n1": 20 * time.Second, "n4": 10 * time.Second} {
			if got := r.Contact.look(suspect{node: node}, nil, nil).leases.Lapsed; got != want {
				t.Errorf("the lease of %s has lapsed %s ago, want %s", node, got, want)
			}
		}
	})
}

func TestAChangeThatComesAfterItsContactIsNotTaken(t *testing.T) {
	change := watch.Event{Type: watch.Modified, Object: guardLease("n1", nil, 0)}
	c := &Contact{Clock: clock.RealClock{}}
	if _, err := c.see(t.Context(), change); !errors.Is(err, errLost) {
		t.Errorf("without a contact: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	c.begin([]coordinationv1.Lease{}, end)
	end() // the next contact has begun
	if _, err := c.see(ctx, change); !errors.Is(err, errLost) || c.seen.guards["n1"] {
		t.Errorf("in the next contact: %v, %v", err, c.seen.guards)
	}
}

func TestAContactThatEndsIsToldOfUnlessTheProcessEnds(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		told := 0
		c := &Contact{Leases: w.leases, Namespace: namespace, Clock: clock.RealClock{}, Log: funcr.New(func(string, string) { told++ }, funcr.Options{})}
		ctx, end := context.WithCancel(w.t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		w.waits(time.Second)
		c.Break()
		w.waits(2 * reconnect)
		end()
		if err := <-ended; err != nil || told != 1 {
			t.Errorf("told %d times, %v", told, err)
		}
	})
}
