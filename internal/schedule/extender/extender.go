package extender

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/schedule"
)

// Extender answers the scheduler's questions out of a Book.
type Extender struct {
	Book    *schedule.Book
	Objects Objects
	// Driver whose volumes are placed.
	Driver driver.Driver
	Holds  *Holds
	// Strategy says which of several fitting nodes is better.
	Strategy ledger.Strategy
}

// held is the number of nodes on which room is held for one pod: the best ones. Holds
// on more nodes would cost more than they save. The extender does not know which of
// hundreds of nodes the scheduler takes, and two pods seldom meet on one.
const held = 16

// Filter says on which of the nodes the pod's volumes fit, and holds the room on the
// best of them. If a claim goes to another node, that node decides. But an inline
// volume is made when no other node can be chosen any more, so a pod that has one
// gets only nodes on which room is held. The Book must be synced.
func (e *Extender) Filter(ctx context.Context, question *corev1.Pod, nodes []string) (FilterResult, error) {
	pod, v, err := e.read(ctx, question)
	if err != nil {
		return FilterResult{}, err
	}
	out := FilterResult{FailedNodes: map[string]string{}, FailedAndUnresolvableNodes: map[string]string{}}
	if v != nil && v.Unready != "" {
		for _, node := range nodes {
			out.FailedAndUnresolvableNodes[node] = "Berth: " + v.Unready
		}
		out.NodeNames = &[]string{}
		return out, nil
	}
	if v == nil || len(v.Wanted) == 0 {
		out.NodeNames = &nodes
		return out, nil
	}
	q, err := e.query(ctx, pod, v)
	if err != nil {
		return FilterResult{}, err
	}
	fitting, err := e.fitting(ctx, q, nodes, &out)
	if err != nil {
		return FilterResult{}, err
	}
	best, err := e.best(ctx, q, fitting)
	if err != nil {
		return FilterResult{}, err
	}
	if hasInline(v) {
		for _, node := range fitting {
			if !slices.Contains(best, node) {
				out.FailedNodes[node] = "Berth: other nodes have more room for the pod's inline volumes"
			}
		}
		fitting = best
	}
	e.Holds.hold(string(pod.UID), best, v)
	out.NodeNames = &fitting
	return out, nil
}

// errNoSuchPod is the answer to a question about a pod that does not exist, or that has its node.
var errNoSuchPod = errors.New("no pod of that name and UID waits for a node")

// read finds the pod of a question, and its volumes. Only the name and the UID in the question
// count: room is held for the pod as the API server describes it, never as the question does.
func (e *Extender) read(ctx context.Context, question *corev1.Pod) (*corev1.Pod, *schedule.PodVolumes, error) {
	pod, err := e.Objects.Pod(ctx, question.Namespace, question.Name, question.UID)
	if err != nil {
		return nil, nil, fmt.Errorf("reading pod %s/%s: %w", question.Namespace, question.Name, err)
	}
	if pod == nil || pod.Spec.NodeName != "" {
		return nil, nil, errNoSuchPod
	}
	v, err := schedule.Reader{Driver: e.Driver, Objects: e.Objects}.Read(ctx, pod)
	return pod, v, err
}

// fitting returns the nodes with room, and notes in out why the others do not fit.
func (e *Extender) fitting(ctx context.Context, q *query, nodes []string, out *FilterResult) ([]string, error) {
	fitting := make([]string, 0, len(nodes))
	for _, node := range nodes {
		r, err := q.on(ctx, node)
		if err != nil {
			return nil, err
		}
		if r == nil || e.Book.Node(node).Fit(r).Fits() {
			fitting = append(fitting, node)
			continue
		}
		message, evictable := e.refusal(node, r, q.volumes)
		if evictable {
			out.FailedNodes[node] = message
		} else {
			out.FailedAndUnresolvableNodes[node] = message
		}
	}
	return fitting, nil
}

// best holds room on the best of the nodes, and returns those.
func (e *Extender) best(ctx context.Context, q *query, fitting []string) ([]string, error) {
	type scored struct {
		node    string
		request *ledger.Request
		score   int64
	}
	list := make([]scored, 0, len(fitting))
	for _, node := range fitting {
		r, err := q.on(ctx, node)
		if err != nil {
			return nil, err
		}
		if r != nil {
			list = append(list, scored{node, r, e.Book.Node(node).Score(r)})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	best := []string{} // the protocol distinguishes an empty list from no list
	for _, s := range list {
		if len(best) == held {
			break
		}
		if _, verdict := e.Book.Reserve(s.node, s.request); verdict.Fits() {
			best = append(best, s.node)
		}
	}
	return best, nil
}

func hasInline(v *schedule.PodVolumes) bool {
	return slices.ContainsFunc(v.Wanted, func(w schedule.Wanted) bool { return w.Claim == nil })
}

// refusal says why the volumes do not fit on a node, and whether they might fit after
// an eviction of pods with inline volumes.
func (e *Extender) refusal(name string, r *ledger.Request, v *schedule.PodVolumes) (message string, evictable bool) {
	node := e.Book.Node(name)
	x := node.Explain(r)
	if x.Verdict.Fits() {
		return "the room was taken a moment ago", true
	}
	var pods []string
	for _, pool := range e.Book.Pools(name) {
		for _, fact := range pool.Facts {
			if fact.Owner.Kind == ledger.ByPod {
				pods = append(pods, fact.Owner.ID)
			}
		}
	}
	message = "Berth: " + cmp.Or(v.Why(x.Verdict), x.Message(quantity.Bytes))
	return message, len(pods) > 0 && node.WithoutPods(pods...).Fit(r).Fits()
}

// Prioritize says how well each node suits the pod's volumes. A node that holds a replica of
// one of them is best, and so is a node where static volumes serve them all.
func (e *Extender) Prioritize(ctx context.Context, question *corev1.Pod, nodes []string) ([]HostPriority, error) {
	pod, v, err := e.read(ctx, question)
	if err != nil {
		return nil, err
	}
	list := make([]HostPriority, 0, len(nodes))
	if v == nil {
		for _, node := range nodes {
			list = append(list, HostPriority{Host: node})
		}
		return list, nil
	}
	q, err := e.query(ctx, pod, v)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		r, err := q.on(ctx, node)
		if err != nil {
			return nil, err
		}
		score := int64(maxPriority)
		if r != nil && !holds(v.Holders, node) {
			score = e.Book.Node(node).Score(r) * maxPriority / ledger.MaxScore
		}
		list = append(list, HostPriority{node, score})
	}
	return list, nil
}

func holds(holders []schedule.Holder, node string) bool {
	for _, h := range holders {
		if h.Node == node && h.Standing > schedule.Unfit {
			return true
		}
	}
	return false
}
