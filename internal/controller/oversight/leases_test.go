package oversight

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// leases are the Leases of the API server, with their watches.
type leases struct {
	mu      sync.Mutex
	version int
	stored  map[string]*coordinationv1.Lease
	// log has all changes, in order, and watchers those that follow it.
	log      []watch.Event
	watchers []*watcher
	down     bool
	// kept is the oldest version from which a watch may go on.
	kept int
	// hang: the answer to a new watch does not come.
	hang bool
	// unlisted and unwatched: lists, and new watches, are refused.
	unlisted, unwatched bool
	// delay is how late watches are; they keep the order.
	delay time.Duration
}

func newLeases() *leases { return &leases{stored: map[string]*coordinationv1.Lease{}} }

type watcher struct {
	of     *leases
	out    chan watch.Event
	closed bool
	queue  []delayed
}

type delayed struct {
	watch.Event
	at time.Time
}

// brings a change, now or later.
func (w *watcher) brings(e watch.Event, at time.Time) {
	if n := len(w.queue); n > 0 && w.queue[n-1].at.After(at) {
		at = w.queue[n-1].at
	}
	w.queue = append(w.queue, delayed{e, at})
	w.deliver()
}

func (w *watcher) deliver() {
	for len(w.queue) > 0 && !w.queue[0].at.After(time.Now()) {
		if !w.closed {
			w.out <- w.queue[0].Event
		}
		w.queue = w.queue[1:]
	}
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.out }

func (w *watcher) Stop() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.close()
}

func (w *watcher) close() {
	if !w.closed {
		w.closed = true
		close(w.out)
	}
}

func (l *leases) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down || l.unlisted {
		return errors.New("connection refused")
	}
	into := list.(*coordinationv1.LeaseList)
	into.ResourceVersion = strconv.Itoa(l.version)
	for _, o := range l.stored {
		into.Items = append(into.Items, *o.DeepCopy())
	}
	return nil
}

func (l *leases) Watch(ctx context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hang {
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		return nil, ctx.Err()
	}
	if l.down || l.unwatched {
		return nil, errors.New("connection refused")
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	from, _ := strconv.Atoi(o.Raw.ResourceVersion)
	if from < l.kept {
		return nil, apierrors.NewResourceExpired("too old a version")
	}
	w := &watcher{of: l, out: make(chan watch.Event, 1000)}
	for _, e := range l.log[from:] {
		w.brings(e, time.Now().Add(l.delay))
	}
	l.watchers = append(l.watchers, w)
	return w, nil
}

// put stores a Lease and tells the watches.
func (l *leases) put(o *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := watch.Modified
	if l.stored[o.Name] == nil {
		kind = watch.Added
	}
	l.changes(kind, o)
	l.stored[o.Name] = o
}

// deletes removes a Lease and tells the watches.
func (l *leases) deletes(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes(watch.Deleted, l.stored[name])
	delete(l.stored, name)
}

// changes is called with the lock.
func (l *leases) changes(kind watch.EventType, o *coordinationv1.Lease) {
	l.version++
	o.ResourceVersion = strconv.Itoa(l.version)
	l.log = append(l.log, watch.Event{Type: kind, Object: o.DeepCopy()})
	for _, w := range l.watchers {
		w.brings(l.log[len(l.log)-1], time.Now().Add(l.delay))
	}
}

// deliver lets the watches bring what is due.
func (l *leases) deliver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watchers {
		w.deliver()
	}
}

// breaks ends all watches.
func (l *leases) breaks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watchers {
		w.close()
	}
	l.watchers = nil
}

// forgets makes the past one from which no watch goes on.
func (l *leases) forgets() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.log = append(l.log, watch.Event{Type: watch.Bookmark, Object: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(l.version)}}})
	l.kept = l.version
}

// fails makes all watches bring an error, as when what they were to go on from was forgotten.
func (l *leases) fails() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watchers {
		if !w.closed {
			w.out <- watch.Event{Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonExpired}}
		}
	}
}

// hangs says whether the answer to a new watch does not come.
func (l *leases) hangs(hang bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hang = hang
}

// stops ends all watches and refuses new ones until it is told again.
func (l *leases) stops(down bool) {
	l.breaks()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// guardLease is a renewal of a node's guard, sent at a time on the machine's clock.
func guardLease(node string, storage []string, sent time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.GuardLeasePrefix + node, UID: "u", Annotations: map[string]string{
		v1alpha1.BootAnnotation: boot, v1alpha1.WatchdogAnnotation: "true",
		v1alpha1.MembersAnnotation: string(ownership.MembersOf(node, storage)),
		v1alpha1.SentAnnotation:    sent.String(), v1alpha1.SilentAnnotation: (5 * time.Second).String(),
	}}}
}

func renewed(namespace, name string, at time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}}}
}
