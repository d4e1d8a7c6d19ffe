package plugin

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/schedule"
)

// Refusals are the waiting pods that a plugin of Berth's has refused a node, or
// all nodes, in their last cycle. They are woken when the ledger says that there
// is room: the scheduler's own events cannot tell, because the ledger hears of a
// change by another watch, and a pod that is tried before the ledger knows is
// refused again, and for long.
type Refusals struct {
	mu    sync.Mutex
	byUID map[string]*refusal
	// sourced are the pods whose claims are to be made from something.
	sourced map[string]bool

	// trials are the pods that hold room on a node in a simulation, and begun is
	// how many there have been.
	trials map[trial]bool
	begun  uint64
	over   func()
}

// trial is what a pod of a group holds on a node while the scheduler tries
// whether all of the group can be placed. It is given back in any case.
type trial struct{ pod, node string }

// refusal is set before what was refused is believed: see Filter.
type refusal struct {
	pod     *corev1.Pod
	want    *schedule.PodVolumes
	refused atomic.Bool
}

// Refused is a pod that was refused.
type Refused struct {
	Pod *corev1.Pod
	// want is what was read of it then.
	want *schedule.PodVolumes
}

// NewRefusals returns an empty list. over is called when a simulation has ended.
func NewRefusals(over func()) *Refusals {
	return &Refusals{byUID: map[string]*refusal{}, sourced: map[string]bool{}, trials: map[trial]bool{}, over: over}
}

// begin begins a cycle of a pod.
func (r *Refusals) begin(pod *corev1.Pod, want *schedule.PodVolumes) *refusal {
	each := &refusal{pod: pod, want: want}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byUID[uid(pod)] = each
	delete(r.sourced, uid(pod))
	if len(want.Sources) > 0 {
		r.sourced[uid(pod)] = true
	}
	return each
}

// Forget a pod: it was bound, or is gone.
func (r *Refusals) Forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byUID, uid(pod))
	delete(r.sourced, uid(pod))
}

// Sourced is whether there is any pod whose claims are to be made from something.
func (r *Refusals) Sourced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sourced) > 0
}

// isSourced is whether the pod is one of them.
func (r *Refusals) isSourced(pod *corev1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sourced[uid(pod)]
}

// Pods that were refused.
func (r *Refusals) Pods() []Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods []Refused
	for _, each := range r.byUID {
		if each.refused.Load() {
			pods = append(pods, Refused{each.pod, each.want})
		}
	}
	return pods
}

// Simulations is how many trials have begun, and whether any is not over: what
// the ledger says meanwhile keeps pods waiting that may fit a moment later.
func (r *Refusals) Simulations() (begun uint64, running bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun, len(r.trials) > 0
}

// try begins a trial. It comes before the room is held.
func (r *Refusals) try(t trial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trials[t] = true
	r.begun++
}

// tried ends a trial, if it is one. It comes after the room was given back.
func (r *Refusals) tried(t trial) {
	r.mu.Lock()
	last := r.trials[t] && len(r.trials) == 1
	delete(r.trials, t)
	r.mu.Unlock()
	if last {
		r.over()
	}
}
