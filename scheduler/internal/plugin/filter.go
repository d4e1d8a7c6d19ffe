package plugin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// Filter refuses nodes on which the pod's volumes do not fit, all together. It
// is called for many nodes at once.
func (p *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	c := read(state)
	if c == nil || len(c.want.Wanted) == 0 {
		return nil
	}
	name := info.Node().Name
	request, err := p.requestOn(ctx, c, pod, info.Node())
	if err != nil {
		return fwk.AsStatus(err)
	}
	for {
		now := p.Book.Node(name)
		node := now
		if evicted := c.evicted[name]; len(evicted) > 0 && node != nil {
			node = node.WithoutPods(evicted...)
		}
		verdict := node.Fit(request)
		if verdict.Fits() {
			return nil
		}
		// A change between the question and the note would wake no pod, so the
		// refusal counts only if nothing has changed since.
		if p.Refusals.refuse(c.refusal, name, verdict.Reason); p.Book.Node(name) == now {
			return fwk.NewStatus(p.remedy(node, request, verdict, pod, info), c.why(verdict))
		}
	}
}

// requestOn is the request for one node: without the claims that a static
// PersistentVolume is found for there, and with the demands of simulated pods. It
// is nearly always the request for all.
func (p *Plugin) requestOn(ctx context.Context, c *cycle, pod *corev1.Pod, node *corev1.Node) (*ledger.Request, error) {
	added := c.added[node.Name]
	if c.static == nil && len(added) == 0 {
		return c.request, nil
	}
	wanted, err := p.unmatched(ctx, c, pod, node)
	if err != nil {
		return nil, err
	}
	demands := demandsOf(wanted)
	for _, e := range added {
		demands = append(demands, e.demands...)
	}
	request, _ := p.Book.Request(c.options, demands...)
	return request, nil
}

// remedy is Unschedulable if the pod would fit once all pods of lower priority were
// evicted. Only evicting those with inline volumes can bring that about.
func (p *Plugin) remedy(node *ledger.Node, request *ledger.Request, verdict ledger.Verdict, pod *corev1.Pod, info fwk.NodeInfo) fwk.Code {
	if verdict.Reason != ledger.NoRoom && verdict.Reason != ledger.NotTogether && verdict.Reason != ledger.TooManyWays {
		return fwk.UnschedulableAndUnresolvable
	}
	var victims []string
	priority := corev1helpers.PodPriority(pod)
	for _, other := range info.GetPods() {
		if each := other.GetPod(); corev1helpers.PodPriority(each) < priority && schedule.HasInline(p.Driver, each) {
			victims = append(victims, uid(each))
		}
	}
	if len(victims) > 0 && node.WithoutPods(victims...).Fit(request).Fits() {
		return fwk.Unschedulable
	}
	return fwk.UnschedulableAndUnresolvable
}
