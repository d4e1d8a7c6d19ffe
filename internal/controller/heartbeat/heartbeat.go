package heartbeat

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase/volumes"
)

// patience is how long a Lease that names no duration is trusted.
const patience = 40 * time.Second

var _ volumes.Nodes = (*Heartbeats)(nil)

// Heartbeats knows which Nodes are ready and when each agent last renewed its Lease.
// The informers of Nodes and Leases must feed its handlers.
type Heartbeats struct {
	clock clock.PassiveClock
	began time.Time

	mu    sync.Mutex
	ready map[string]bool   // every Node has a key
	shut  map[string]bool   // the Nodes that new pods are kept from
	names map[string]string // every Node by its replica label
	last  map[string]beat
	// listeners are called after each event, without the lock.
	listeners []func(node string)
}

type beat struct {
	renewed  time.Time // as the agent wrote it: only compared with itself
	seen     time.Time // on our clock
	patience time.Duration
}

// New makes Heartbeats that know no node yet.
func New(c clock.PassiveClock) *Heartbeats {
	return &Heartbeats{clock: c, began: c.Now(), ready: map[string]bool{}, shut: map[string]bool{}, names: map[string]string{}, last: map[string]beat{}}
}

// NodeHandler returns the handler for the informer of Nodes.
func (h *Heartbeats) NodeHandler() cache.ResourceEventHandler {
	return handler(h.observeNode, h.forgetNode)
}

// LeaseHandler returns the handler for the informer of Leases.
func (h *Heartbeats) LeaseHandler() cache.ResourceEventHandler {
	return handler(h.observeLease, h.forgetLease)
}

func handler(observe, forget func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, obj any) { observe(obj) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			forget(obj)
		},
	}
}

// Notify adds a listener, which is called after every event of a node. An agent that
// falls silent causes no event and no call.
func (h *Heartbeats) Notify(heard func(node string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, heard)
}

// change runs a change of a node's state under the lock, and then calls the listeners.
func (h *Heartbeats) change(node string, change func()) {
	h.mu.Lock()
	change()
	listeners := h.listeners
	h.mu.Unlock()
	for _, heard := range listeners {
		heard(node)
	}
}

func (h *Heartbeats) observeNode(obj any) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	h.change(node.Name, func() {
		h.names[v1alpha1.ReplicaLabel(node.Name)] = node.Name
		h.ready[node.Name] = ready
		h.shut[node.Name] = shut(node)
	})
}

func (h *Heartbeats) forgetNode(obj any) {
	if node, ok := obj.(*corev1.Node); ok {
		h.change(node.Name, func() {
			delete(h.names, v1alpha1.ReplicaLabel(node.Name))
			delete(h.ready, node.Name)
			delete(h.shut, node.Name)
		})
	}
}

// shut reports whether a Node is cordoned, or has a taint that a pod has to tolerate.
func shut(node *corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	})
}

func (h *Heartbeats) observeLease(obj any) {
	lease, node := agentLease(obj)
	if lease == nil {
		return
	}
	b := beat{seen: h.clock.Now(), patience: patience}
	if lease.Spec.RenewTime != nil {
		b.renewed = lease.Spec.RenewTime.Time
	}
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		b.patience = time.Duration(*seconds) * time.Second
	}
	h.change(node, func() {
		if old, known := h.last[node]; known && old.renewed.Equal(b.renewed) {
			b.seen = old.seen // an edit, or a resync: not a heartbeat
		}
		h.last[node] = b
	})
}

func (h *Heartbeats) forgetLease(obj any) {
	if lease, node := agentLease(obj); lease != nil {
		h.change(node, func() { delete(h.last, node) })
	}
}

// agentLease is the Lease of an agent and the node it is for, or nil.
func agentLease(obj any) (*coordinationv1.Lease, string) {
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return nil, ""
	}
	node, ok := strings.CutPrefix(lease.Name, v1alpha1.AgentLeasePrefix)
	if !ok {
		return nil, ""
	}
	return lease, node
}

// Away is empty, or says why a node cannot be expected to answer.
func (h *Heartbeats) Away(node string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ready, exists := h.ready[node]
	b, heard := h.last[node]
	switch {
	case !exists:
		return "the Node does not exist"
	case !ready:
		return "the Node is not ready"
	case !heard:
		return "its berth-agent has never been heard of"
	}
	if silence := h.clock.Since(b.seen); silence > b.patience {
		return fmt.Sprintf("its berth-agent has been silent for %s", silence.Truncate(time.Second))
	}
	return ""
}

// Shut reports whether a cordon or a taint keeps new pods from a node. It says nothing about
// the node's agent, which may tolerate both.
func (h *Heartbeats) Shut(node string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shut[node]
}

// Silence reports whether a node's agent has not renewed its Lease for longer than the Lease
// lasts. If it is not silent, left is the time until it would be. An agent that was never seen
// gets that time from the moment when this process began to listen. Whether the Node is ready
// says nothing about its agent.
func (h *Heartbeats) Silence(node string) (silent bool, left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, heard := h.last[node]
	if !heard {
		b = beat{seen: h.began, patience: patience}
	}
	left = b.patience - h.clock.Since(b.seen)
	return left < 0, max(left, 0)
}

// Labelled is the node that a replica label stands for, or empty if there is no
// such Node.
func (h *Heartbeats) Labelled(label string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[label]
}
