package shell

import (
	"context"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leases are a controller's way to the Leases, which has no cache.
type leases struct{ c *caller }

// List implements oversight.Leases.
func (l leases) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	into := list.(*coordinationv1.LeaseList)
	return l.c.call(ctx, "ListLease", "", func() error {
		var o client.ListOptions
		o.ApplyOptions(options)
		a := l.c.p.w.api
		a.mu.Lock()
		defer a.mu.Unlock()
		chosen(itemsOf(list), inOrder(a.objects[kindOf(&coordinationv1.Lease{})]), &o)
		into.ResourceVersion = strconv.Itoa(a.revision)
		return nil
	})
}

// Watch implements oversight.Leases. It goes on from a version.
func (l leases) Watch(ctx context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	var o client.ListOptions
	o.ApplyOptions(options)
	from, err := strconv.Atoi(o.Raw.ResourceVersion)
	if err != nil {
		return nil, err
	}
	x := &watcher{p: l.c.p, namespace: o.Namespace, out: make(chan watch.Event, 1000)}
	err = l.c.call(ctx, "WatchLease", "", func() error {
		a := l.c.p.w.api
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, c := range a.leases {
			if c.revision > from {
				x.brings(c)
			}
		}
		a.watchers = append(a.watchers, x)
		return nil
	})
	return x, err
}

// watcher is one watch of Leases. It brings each change once, in order and late, until it breaks.
type watcher struct {
	p         *process
	namespace string
	out       chan watch.Event

	mu     sync.Mutex
	last   time.Time
	heard  uint64
	broken bool // nothing comes any more
	closed bool
}

func (x *watcher) brings(c change) {
	if x.p.isDead() || c.event.Object.(client.Object).GetNamespace() != x.namespace {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken {
		return
	}
	x.heard++
	d := rolled(x.p.w.seed, x.heard, x.p.name, "watches")
	at := time.Now().Add(d.upTo(50 * time.Millisecond))
	if !at.After(x.last) {
		at = x.last.Add(1)
	}
	x.last = at
	time.AfterFunc(time.Until(at), func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		switch {
		case x.closed || x.broken:
		case x.p.m.awayFromAPI():
			x.breaks(d.between(time.Second, 20*time.Second))
		default:
			x.out <- c.event
		}
	})
}

// breaks has the watch bring nothing more, and end after a while. It is called with the lock.
func (x *watcher) breaks(after time.Duration) {
	x.broken = true
	time.AfterFunc(after, x.Stop)
}

// late holds the watch up for a while.
func (x *watcher) late(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if until := time.Now().Add(d); until.After(x.last) {
		x.last = until
	}
}

// ResultChan implements watch.Interface.
func (x *watcher) ResultChan() <-chan watch.Event { return x.out }

// Stop implements watch.Interface.
func (x *watcher) Stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.closed = true
		close(x.out)
	}
}
