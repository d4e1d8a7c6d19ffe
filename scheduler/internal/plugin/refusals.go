package plugin

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// Refusals are the waiting pods that a plugin of Berth's has refused a node, or
// all nodes, in their last cycle. They are woken when the ledger says that there
// is room: the scheduler's own events cannot tell, because the ledger hears of a
// change by another watch, and a pod that is tried before the ledger knows is
// refused again, and for long.
type Refusals struct {
	mu    sync.Mutex
	byUID map[string]*refusal
}

// refusal is set before what was refused is believed: see Filter.
type refusal struct {
	pod     *corev1.Pod
	refused atomic.Bool
}

// NewRefusals returns an empty list.
func NewRefusals() *Refusals { return &Refusals{byUID: map[string]*refusal{}} }

// begin begins a cycle of a pod.
func (r *Refusals) begin(pod *corev1.Pod) *refusal {
	each := &refusal{pod: pod}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byUID[uid(pod)] = each
	return each
}

// Forget a pod: it was bound, or is gone.
func (r *Refusals) Forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byUID, uid(pod))
}

// Pods that were refused.
func (r *Refusals) Pods() []*corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods []*corev1.Pod
	for _, each := range r.byUID {
		if each.refused.Load() {
			pods = append(pods, each.pod)
		}
	}
	return pods
}
