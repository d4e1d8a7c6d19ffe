package plugin

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// Refusals are the waiting pods that a plugin of Berth's has refused a node, or
// all nodes, in their last cycle. They are woken when the ledger says that there
// is room where they were refused: the scheduler's own events cannot tell, because the
// ledger hears of a change by another watch, and a pod that is tried before the ledger
// knows is refused again, and for long.
type Refusals struct {
	// Exists is whether a pod is there still, by the watch whose deletions come to
	// Forget. Nil skips that check.
	Exists func(pod *corev1.Pod) bool

	mu    sync.Mutex
	byUID map[string]*refusal
	// numbers of the nodes in each refusal's set. They begin anew once there is no refusal.
	numbers map[string]int
	// sourced are the pods whose claims are to be made from a source.
	sourced map[string]bool

	// trials are the pods that hold room on a node in a simulation, and begun is
	// how many there have been.
	trials map[trial]bool
	begun  uint64
	over   func()
}

// trial is the room that a pod of a group holds on a node while the scheduler tries
// whether all of the group can be placed. It is given back in any case.
type trial struct{ pod, node string }

// refusal notes that a pod was refused, before the refusal is believed: see Filter.
type refusal struct {
	pod     *corev1.Pod
	want    *schedule.PodVolumes
	refused atomic.Bool
	// full are the nodes that were refused for a curable reason, a bit for each.
	full []uint64
	// woken is how often the pod was woken, rests the time from which it may be
	// again.
	woken int
	rests time.Time
	// due is whether it is to be woken then.
	due bool
}

// Refused is a pod that was refused.
type Refused struct {
	Pod *corev1.Pod
	// want is what the pod wanted when it was read then.
	want *schedule.PodVolumes
	of   *refusal
}

// NewRefusals returns an empty list. over is called when a simulation has ended.
func NewRefusals(over func()) *Refusals {
	return &Refusals{byUID: map[string]*refusal{}, numbers: map[string]int{}, sourced: map[string]bool{}, trials: map[trial]bool{}, over: over}
}

// begin begins a cycle of a pod. A pod that is gone by now is not remembered: the
// informer, which is ahead of the cycle, will not say so again.
func (r *Refusals) begin(pod *corev1.Pod, want *schedule.PodVolumes) *refusal {
	each := r.note(pod, want)
	if r.Exists != nil && !r.Exists(pod) {
		r.Forget(pod)
	}
	return each
}

func (r *Refusals) note(pod *corev1.Pod, want *schedule.PodVolumes) *refusal {
	each := &refusal{pod: pod, want: want}
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.byUID[uid(pod)]; before != nil {
		each.woken, each.rests = before.woken, before.rests
	}
	r.byUID[uid(pod)] = each
	delete(r.sourced, uid(pod))
	if len(want.Sources) > 0 {
		r.sourced[uid(pod)] = true
	}
	return each
}

// refuse notes that a pod was refused a node.
func (r *Refusals) refuse(each *refusal, node string, reason ledger.Reason) {
	if curable[reason] {
		r.mu.Lock()
		n, known := r.numbers[node]
		if !known {
			n = len(r.numbers)
			r.numbers[node] = n
		}
		for len(each.full) <= n/64 {
			each.full = append(each.full, 0)
		}
		each.full[n/64] |= 1 << (n % 64)
		r.mu.Unlock()
	}
	each.refused.Store(true)
}

// curable are the reasons that may be over with a node's next report, with the end
// of a volume, or with a claim that is given back. Reasons about the classes that a
// node serves are not among them.
var curable = map[ledger.Reason]bool{
	ledger.HeldElsewhere: true, ledger.NodeNotReady: true, ledger.PoolMissing: true, ledger.PoolUnhealthy: true, ledger.PoolFull: true,
	ledger.AgentTooOld: true, ledger.NoRoom: true, ledger.NotTogether: true, ledger.TooManyWays: true,
}

// On returns those of the nodes that refused the pod for a curable reason.
func (r *Refusals) On(refused Refused, nodes map[string]bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var on []string
	for node := range nodes {
		if n, known := r.numbers[node]; known && n/64 < len(refused.of.full) && refused.of.full[n/64]&(1<<(n%64)) != 0 {
			on = append(on, node)
		}
	}
	return on
}

// Back-off of the pods that are woken: as long as the scheduler's own by default,
// which a woken pod bypasses.
const (
	firstRest = time.Second
	maxRest   = 10 * time.Second
)

// Wake says whether a refused pod may be woken now. After it was woken a pod rests,
// the longer the more often it was woken. next is the end of its rest, and Due says
// then that it was to be woken.
func (r *Refusals) Wake(refused Refused, now time.Time) (wakes bool, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	each := refused.of
	if each.due = now.Before(each.rests); each.due {
		return false, each.rests
	}
	each.rests = now.Add(min(firstRest<<min(each.woken, 4), maxRest))
	each.woken++
	return true, time.Time{}
}

// Due is whether the pod was to be woken before and had not rested.
func (r *Refusals) Due(refused Refused) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return refused.of.due
}

// Forget a pod: it was bound, or is gone.
func (r *Refusals) Forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byUID, uid(pod))
	delete(r.sourced, uid(pod))
	if len(r.byUID) == 0 {
		clear(r.numbers)
	}
}

// Sourced is whether there is any pod whose claims are to be made from a source.
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
			pods = append(pods, Refused{each.pod, each.want, each})
		}
	}
	return pods
}

// Simulations is how many trials have begun, and whether any is not over: meanwhile
// the ledger refuses pods that may fit a moment later.
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
