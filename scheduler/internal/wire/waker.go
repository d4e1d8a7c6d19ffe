package wire

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/signal"
	"berth.dev/berth/scheduler/internal/plugin"
)

// activator is a profile's scheduling queue.
type activator interface {
	ProfileName() string
	Activate(logger klog.Logger, pods map[string]*corev1.Pod)
}

// waker activates the pods that Berth has refused, once they may fit where it has
// refused them.
type waker struct {
	book     plugin.Book
	reader   plugin.Reader
	refusals *plugin.Refusals
	clock    clock.WithDelayedExecution
	due      signal.Signal
	alarm    time.Time // when the next pods have rested; only look uses it

	mu       sync.Mutex
	profiles []activator
	changes
}

// changes are the events that the waker has been told of and has not looked at.
type changes struct {
	nodes   map[string]bool // on which room may have come free
	opened  map[string]bool // whose pools serve something new, or can be asked again
	all     bool            // everything may have changed
	sources bool            // sources of claims may have changed
	rested  bool            // pods that were to be woken may be by now
}

func noChanges() changes { return changes{nodes: map[string]bool{}, opened: map[string]bool{}} }

func (c *changes) none() bool {
	return len(c.nodes) == 0 && len(c.opened) == 0 && !c.all && !c.sources && !c.rested
}

func newWaker(book plugin.Book, reader plugin.Reader, c clock.WithDelayedExecution) *waker {
	w := &waker{book: book, reader: reader, clock: c, due: signal.New(), changes: noChanges()}
	w.refusals = plugin.NewRefusals(w.wake)
	return w
}

func (w *waker) add(profile activator) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.profiles = append(w.profiles, profile)
}

// freed asks another goroutine to wake, soon, the pods that were refused on these
// nodes and fit there now. It must be called after the ledger knows.
func (w *waker) freed(nodes ...string) {
	w.told(func(c *changes) {
		for _, node := range nodes {
			c.nodes[node] = true
		}
	})
}

// open asks for the pods to be woken that fit on a node whose pools serve something
// new or can be asked again, wherever they were refused.
func (w *waker) open(node string) { w.told(func(c *changes) { c.opened[node] = true }) }

func (w *waker) told(change func(*changes)) {
	w.mu.Lock()
	change(&w.changes)
	w.mu.Unlock()
	w.wake()
}

// everything asks for all refused pods to be woken.
func (w *waker) everything() { w.told(func(c *changes) { c.all = true }) }

// sourced asks for the pods to be woken whose sources have come, gone or moved.
// Where there are no such pods it costs nothing.
func (w *waker) sourced() {
	if !w.refusals.Sourced() {
		return // a pod that comes now reads the change
	}
	w.told(func(c *changes) { c.sources = true })
}

func (w *waker) wake() {
	w.due.Set()
}

// run wakes pods when it is due, until ctx ends.
func (w *waker) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.due:
			w.look(ctx)
		}
	}
}

// look wakes the pods that fit by now. While the scheduler simulates, the ledger
// shows less room than there is. Checks that this may have made wrong are repeated.
func (w *waker) look(ctx context.Context) {
	before, simulating := w.refusals.Simulations()
	if simulating {
		return // and called again when the last simulation ends
	}
	w.mu.Lock()
	changed := w.changes
	w.changes = noChanges()
	w.mu.Unlock()
	if changed.none() {
		return
	}
	waiting := map[string]map[string]*corev1.Pod{} // by profile
	now, next := w.clock.Now(), time.Time{}
	for _, refused := range w.refusals.Pods() {
		if !w.concerns(ctx, refused, &changed) {
			continue
		}
		wakes, later := w.refusals.Wake(refused, now)
		if !wakes {
			if next.IsZero() || later.Before(next) {
				next = later
			}
			continue
		}
		pod := refused.Pod
		if waiting[pod.Spec.SchedulerName] == nil {
			waiting[pod.Spec.SchedulerName] = map[string]*corev1.Pod{}
		}
		waiting[pod.Spec.SchedulerName][pod.Namespace+"/"+pod.Name] = pod
	}
	if changed.rested {
		w.alarm = time.Time{}
	}
	if !next.IsZero() && (w.alarm.IsZero() || next.Before(w.alarm)) {
		w.alarm = next
		w.clock.AfterFunc(next.Sub(now), func() { w.told(func(c *changes) { c.rested = true }) })
	}
	if begun, _ := w.refusals.Simulations(); begun != before {
		w.again(changed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, profile := range w.profiles {
		if pods := waiting[profile.ProfileName()]; len(pods) > 0 {
			profile.Activate(klog.FromContext(ctx), pods)
		}
	}
}

// again has the questions to the ledger asked once more.
func (w *waker) again(changed changes) {
	if len(changed.nodes) == 0 && len(changed.opened) == 0 && !changed.sources {
		return
	}
	w.told(func(c *changes) {
		maps.Copy(c.nodes, changed.nodes)
		maps.Copy(c.opened, changed.opened)
		c.sources = c.sources || changed.sources
	})
}

// concerns is whether the changes let a pod be placed by now, or change the message
// that it waits with. If that cannot be found out, the pod is tried.
func (w *waker) concerns(ctx context.Context, refused plugin.Refused, changed *changes) bool {
	if changed.all || changed.rested && w.refusals.Due(refused) {
		return true
	}
	nodes := slices.AppendSeq(w.refusals.On(refused, changed.nodes), maps.Keys(changed.opened))
	if len(nodes) > 0 {
		if fits, err := plugin.Fits(ctx, w.book, w.reader, refused.Pod, nodes...); fits || err != nil {
			return true
		}
	}
	if !changed.sources {
		return false
	}
	moved, err := plugin.Moved(ctx, w.book, w.reader, refused)
	return moved || err != nil
}
