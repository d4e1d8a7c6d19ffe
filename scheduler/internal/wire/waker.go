package wire

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/scheduler/internal/plugin"
)

// activator is a profile's scheduling queue.
type activator interface {
	ProfileName() string
	Activate(logger klog.Logger, pods map[string]*corev1.Pod)
}

// waker activates the pods that Berth has refused, once they may fit.
type waker struct {
	book     plugin.Book
	reader   plugin.Reader
	refusals *plugin.Refusals
	due      chan struct{}

	mu       sync.Mutex
	profiles []activator
	nodes    map[string]bool // on which room may have come free
	all      bool            // everything may have changed
	sources  bool            // what claims are made from may have changed
}

func newWaker(book plugin.Book, reader plugin.Reader) *waker {
	w := &waker{book: book, reader: reader, due: make(chan struct{}, 1), nodes: map[string]bool{}}
	w.refusals = plugin.NewRefusals(w.wake)
	return w
}

func (w *waker) add(profile activator) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.profiles = append(w.profiles, profile)
}

// freed asks for the pods to be woken that fit on these nodes, soon and by
// somebody else. It must be called after the ledger knows.
func (w *waker) freed(nodes ...string) {
	w.mu.Lock()
	for _, node := range nodes {
		w.nodes[node] = true
	}
	w.mu.Unlock()
	w.wake()
}

// everything asks for all refused pods to be woken.
func (w *waker) everything() {
	w.mu.Lock()
	w.all = true
	w.mu.Unlock()
	w.wake()
}

// sourced asks for the pods to be woken whose claims are made from something that
// has come, gone or moved. Where there are none it costs nothing.
func (w *waker) sourced() {
	if !w.refusals.Sourced() {
		return // one that comes now reads what has changed
	}
	w.mu.Lock()
	w.sources = true
	w.mu.Unlock()
	w.wake()
}

func (w *waker) wake() {
	select {
	case w.due <- struct{}{}:
	default:
	}
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
// says less than there is; what may be overlooked for that is looked at again.
func (w *waker) look(ctx context.Context) {
	before, simulating := w.refusals.Simulations()
	if simulating {
		return // and called again
	}
	w.mu.Lock()
	nodes, all, sources := w.nodes, w.all, w.sources
	w.nodes, w.all, w.sources = map[string]bool{}, false, false
	w.mu.Unlock()
	if len(nodes) == 0 && !all && !sources {
		return
	}

	waiting := map[string]map[string]*corev1.Pod{} // by profile
	for _, refused := range w.refusals.Pods() {
		pod := refused.Pod
		if !all && !w.fits(ctx, pod, nodes) && !(sources && w.moved(ctx, refused)) {
			continue
		}
		if waiting[pod.Spec.SchedulerName] == nil {
			waiting[pod.Spec.SchedulerName] = map[string]*corev1.Pod{}
		}
		waiting[pod.Spec.SchedulerName][pod.Namespace+"/"+pod.Name] = pod
	}
	if begun, _ := w.refusals.Simulations(); begun != before {
		w.freed(slices.Collect(maps.Keys(nodes))...)
		if sources {
			w.sourced()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, profile := range w.profiles {
		if pods := waiting[profile.ProfileName()]; len(pods) > 0 {
			profile.Activate(klog.FromContext(ctx), pods)
		}
	}
}

// fits is whether the pod fits on one of the nodes. What cannot be told is tried.
func (w *waker) fits(ctx context.Context, pod *corev1.Pod, nodes map[string]bool) bool {
	for node := range nodes {
		if fits, err := plugin.Fits(ctx, w.book, w.reader, pod, node); fits || err != nil {
			return true
		}
	}
	return false
}

// moved is whether what a pod's claims are made from lets it be placed by now, or is
// to be told otherwise. What cannot be told is tried.
func (w *waker) moved(ctx context.Context, refused plugin.Refused) bool {
	moved, err := plugin.Moved(ctx, w.book, w.reader, refused)
	return moved || err != nil
}
