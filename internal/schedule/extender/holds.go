package extender

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// How long room is held.
const (
	// Patience is for a pod whose claims get no node, or that has no claims.
	Patience = 2 * time.Second
	// Binding is for the inline volumes of a pod whose claims have got their node
	// and are waited for. Once the pod is bound the ledger charges them itself.
	Binding = time.Minute
)

// Holds remembers for which pods room is held, and gives it back.
type Holds struct {
	book  *schedule.Book
	clock clock.WithDelayedExecution

	mu   sync.Mutex
	pods map[string]*hold
	// claims maps the UID of a claim to the pods that wait for its node.
	claims map[string]map[string]bool
}

// hold is the room that is held for one pod.
type hold struct {
	nodes []string
	// open claims have no node yet.
	open map[string]bool
	// inline says whether the room is also for inline volumes.
	inline bool
	timer  clock.Timer
}

// NewHolds makes an empty Holds on a book. The book's feed must tell Handler of
// claims after the ledger.
func NewHolds(book *schedule.Book, c clock.WithDelayedExecution) *Holds {
	return &Holds{book: book, clock: c, pods: map[string]*hold{}, claims: map[string]map[string]bool{}}
}

// hold notes that room is held on the nodes, and replaces an earlier hold of the pod.
func (h *Holds) hold(pod string, nodes []string, v *schedule.PodVolumes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.pods[pod]; before != nil {
		before.timer.Stop()
		kept := map[string]bool{}
		for _, node := range nodes {
			kept[node] = true
		}
		h.unreserve(pod, before.nodes, func(node string) bool { return kept[node] })
		h.forget(pod, before)
	}
	if len(nodes) == 0 {
		return
	}
	next := &hold{nodes: nodes, open: map[string]bool{}}
	for _, w := range v.Wanted {
		if w.Demand.Owner.Kind != ledger.ByClaim {
			next.inline = true
			continue
		}
		uid := w.Demand.Owner.ID
		next.open[uid] = true
		if h.claims[uid] == nil {
			h.claims[uid] = map[string]bool{}
		}
		h.claims[uid][pod] = true
	}
	h.pods[pod] = next
	next.timer = h.clock.AfterFunc(Patience, func() { h.expire(pod, next) })
}

// expire gives back room that was held in vain, unless another hold has replaced this one.
func (h *Holds) expire(pod string, of *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pods[pod] == of {
		h.end(pod, of)
	}
}

// Handler returns the handler that the feed calls with every claim, after the ledger knows it.
func (h *Holds) Handler() cache.ResourceEventHandler {
	observe := func(obj any) {
		if c, ok := obj.(*corev1.PersistentVolumeClaim); ok {
			if node := c.Annotations[schedule.SelectedNode]; node != "" {
				h.selected(string(c.UID), node)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: observe, UpdateFunc: func(_, obj any) { observe(obj) }}
}

// selected gives back at once the room that is held for the claim's pods on other
// nodes. When every claim has this node, it gives back the room on it too: the ledger
// charges a claim there by its selected node.
func (h *Holds) selected(claim, node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pod := range h.claims[claim] {
		of := h.pods[pod]
		delete(of.open, claim)
		if len(of.open) == 0 && !of.inline {
			of.timer.Stop()
			h.end(pod, of)
			continue
		}
		h.unreserve(pod, of.nodes, func(n string) bool { return n == node })
		of.nodes = []string{node}
		if len(of.open) == 0 {
			of.timer.Stop()
			// The timer may have fired already and wait for the lock: it finds another hold.
			next := &hold{nodes: of.nodes, inline: true}
			h.pods[pod] = next
			next.timer = h.clock.AfterFunc(Binding, func() { h.expire(pod, next) })
		}
	}
	delete(h.claims, claim)
}

// end gives everything back. The timer was stopped, or it is the caller.
func (h *Holds) end(pod string, of *hold) {
	h.unreserve(pod, of.nodes, func(string) bool { return false })
	h.forget(pod, of)
}

func (h *Holds) unreserve(pod string, nodes []string, keep func(node string) bool) {
	for _, node := range nodes {
		if !keep(node) {
			h.book.Unreserve(pod, node)
		}
	}
}

func (h *Holds) forget(pod string, of *hold) {
	delete(h.pods, pod)
	for claim := range of.open {
		delete(h.claims[claim], pod)
		if len(h.claims[claim]) == 0 {
			delete(h.claims, claim)
		}
	}
}
