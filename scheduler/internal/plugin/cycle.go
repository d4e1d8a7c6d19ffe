package plugin

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

const stateKey fwk.StateKey = Name

// cycle is the plugin's knowledge of a pod in one scheduling cycle.
type cycle struct {
	want    *schedule.PodVolumes
	options ledger.RequestOptions
	// request is for everything that is wanted.
	request *ledger.Request
	// static, if set, knows which claims match volumes that exist.
	static *static
	// holders is the standing of a node's replicas, for nodes that have any.
	holders map[string]schedule.Standing
	// evicted and added are the pods that a simulation takes off and puts on a
	// node. They are copied, never changed, because clones share them.
	evicted map[string][]string
	added   map[string][]extra
	refusal *refusal
	// create are the Volumes that PreBind has to make; Reserve sets it.
	create []schedule.Wanted
}

// extra is the demand of a pod that a simulation puts on a node.
type extra struct {
	pod     string
	demands []ledger.Demand
}

// Clone is called for simulations, which change evicted and added alone.
func (c *cycle) Clone() fwk.StateData {
	clone := *c
	clone.evicted, clone.added = maps.Clone(c.evicted), maps.Clone(c.added)
	return &clone
}

// read returns the cycle's state, or nil for a pod that wants nothing of Berth.
func read(state fwk.CycleState) *cycle {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	c, _ := data.(*cycle)
	return c
}

func (c *cycle) evict(node, pod string) {
	if c.evicted == nil {
		c.evicted = map[string][]string{}
	}
	c.evicted[node] = append(slices.Clone(c.evicted[node]), pod)
}

// reprieve takes an eviction back, and says whether there was one.
func (c *cycle) reprieve(node, pod string) bool {
	at := slices.Index(c.evicted[node], pod)
	if at < 0 {
		return false
	}
	c.evicted[node] = slices.Delete(slices.Clone(c.evicted[node]), at, at+1)
	return true
}

func (c *cycle) add(node string, e extra) {
	if c.added == nil {
		c.added = map[string][]extra{}
	}
	c.added[node] = append(slices.Clone(c.added[node]), e)
}

// remove takes an addition back, and says whether there was one.
func (c *cycle) remove(node, pod string) bool {
	at := slices.IndexFunc(c.added[node], func(e extra) bool { return e.pod == pod })
	if at < 0 {
		return false
	}
	c.added[node] = slices.Delete(slices.Clone(c.added[node]), at, at+1)
	return true
}

// uid of a pod, as the ledger names it.
func uid(pod *corev1.Pod) string { return string(pod.UID) }
