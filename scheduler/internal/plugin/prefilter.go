package plugin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// PreFilter works out the demands of the pod, once for all nodes.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	want, err := p.Reader.Read(ctx, pod)
	if err == nil && want != nil && want.Unready != "" {
		// Sources and PoolClasses come by other watches than the scheduler's events: a
		// change from now on wakes the pod, and the second read sees every change before.
		p.Refusals.begin(pod, want).refused.Store(true)
		want, err = p.Reader.Read(ctx, pod)
	}
	switch {
	case err != nil:
		return nil, fwk.AsStatus(err)
	case want == nil:
		return nil, fwk.NewStatus(fwk.Skip)
	case want.Unready != "":
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, want.Unready)
	}
	c := &cycle{want: want, options: ledger.RequestOptions{Pod: uid(pod), Strategy: p.Strategy}, refusal: p.Refusals.begin(pod, want)}
	c.refusal.refused.Store(true) // before the ledger is asked: every change from now on wakes the pod
	var verdict ledger.Verdict
	c.request, verdict = p.Book.Request(c.options, want.Demands()...)
	if !verdict.Fits() {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why(verdict.Reason))
	}
	c.refusal.refused.Store(false)
	if p.mayMatch(want) {
		claims, err := p.Static.Binder().GetPodVolumeClaims(klog.FromContext(ctx), pod)
		if err != nil {
			return nil, fwk.AsStatus(err)
		}
		c.static = &static{claims: claims, unmatched: map[string][]schedule.Wanted{}}
	}
	state.Write(stateKey, c)
	return reachable(want.Holders), nil
}

// reachable are the nodes that hold something of each bound volume. They are
// few, and no other node is looked at.
func reachable(holders []schedule.Holder) *fwk.PreFilterResult {
	byVolume := map[string]sets.Set[string]{}
	for _, h := range holders {
		if byVolume[h.Volume] == nil {
			byVolume[h.Volume] = sets.New[string]()
		}
		byVolume[h.Volume].Insert(h.Node)
	}
	var nodes sets.Set[string]
	for _, has := range byVolume {
		if nodes == nil {
			nodes = has
		} else {
			nodes = nodes.Intersection(has)
		}
	}
	if nodes == nil {
		return nil
	}
	return &fwk.PreFilterResult{NodeNames: nodes}
}

// PreFilterExtensions let the scheduler ask what would be if pods came or went.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// RemovePod simulates that a pod leaves a node: its inline volumes go, its claims
// keep their room.
func (p *Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, removed fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	c, pod := read(state), removed.GetPod()
	if c == nil || c.remove(node.Node().Name, uid(pod)) || !schedule.HasInline(p.Driver, pod) {
		return nil
	}
	c.evict(node.Node().Name, uid(pod))
	return nil
}

// AddPod simulates that a pod comes to a node: back where RemovePod took it off, or
// one that is nominated and on no node yet.
func (p *Plugin) AddPod(ctx context.Context, state fwk.CycleState, _ *corev1.Pod, added fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	c, pod := read(state), added.GetPod()
	if c == nil || c.reprieve(node.Node().Name, uid(pod)) || pod.Spec.NodeName != "" {
		return nil
	}
	want, err := p.Reader.Read(ctx, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if want != nil && len(want.Wanted) > 0 {
		c.add(node.Node().Name, extra{uid(pod), want.Demands()})
	}
	return nil
}
