package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/decide/attach"
	"berth.dev/berth/internal/ownership"
)

// Move is what becomes of one volume when the node that writes it is drained.
type Move struct {
	Volume string `json:"volume"`
	// Pods that use the volume, as namespace/name.
	Pods []string `json:"pods,omitempty"`
	// Targets are the standbys to which the volume can move now, in order.
	Targets []string `json:"targets,omitempty"`
	// Waits says why it cannot move yet; empty if it can.
	Waits string `json:"waits,omitempty"`
	// Shared: several nodes write it at once, and Others do now. It waits for no standby, because its pods get an
	// attachment where they come to.
	Shared bool     `json:"shared,omitempty"`
	Others []string `json:"others,omitempty"`
}

// MoveOf says where a volume can go that a node shall let go: to replicas that are ready, on nodes where its pods
// may run.
func MoveOf(f *Facts, from string, nodes []corev1.Node, pods []*corev1.Pod) Move {
	m := Move{Volume: f.Name, Shared: f.Record.Sharing.ManyWriters, Others: besides(f.Record, from)}
	for _, p := range pods {
		m.Pods = append(m.Pods, p.Namespace+"/"+p.Name)
	}
	var said []string
	for _, name := range f.standbys(from) {
		refusal := refuses(name, nodes, pods)
		if refusal == "" {
			m.Targets = append(m.Targets, name)
			continue
		}
		said = append(said, fmt.Sprintf("node %s: %s", name, refusal))
	}
	switch {
	case len(m.Targets) > 0 || m.Shared:
	case len(said) > 0:
		m.Waits = "no standby is where its pods may run (" + strings.Join(said, "; ") + ")"
	default:
		m.Waits = "no standby is ready: " + f.others(from)
	}
	return m
}

// refuses says why the pods may not run on a node, by what the Node says; empty if they may.
func refuses(name string, nodes []corev1.Node, pods []*corev1.Pod) string {
	n := &attach.Node{Name: name, Registered: true, Guarded: true} // the replica is there, and ready
	for i := range nodes {
		if o := &nodes[i]; o.Name == name {
			n.Exists, n.Ready, n.Cordoned, n.Taints, n.Labels = true, ready(o), o.Spec.Unschedulable, o.Spec.Taints, o.Labels
		}
	}
	users := make([]*attach.Pod, 0, len(pods))
	for _, p := range pods {
		users = append(users, &attach.Pod{Tolerations: p.Spec.Tolerations, Required: nodeaffinity.GetRequiredNodeAffinity(p)})
	}
	return attach.Refuses(n, nil, users).Message
}

func ready(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Unmanaged are the pods that no controller makes anew, as namespace/name.
func Unmanaged(pods []*corev1.Pod) (names []string) {
	for _, p := range pods {
		if metav1.GetControllerOf(p) == nil {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return names
}

// Cordon keeps new pods from a node.
func Cordon(ctx context.Context, c client.Client, node string) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`))
	if err := c.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch); err != nil {
		return fmt.Errorf("cordoning node %s: %w", node, err)
	}
	return nil
}

// ErrBudget says that a PodDisruptionBudget does not allow an eviction now.
var ErrBudget = errors.New("a PodDisruptionBudget does not allow it now")

// Evict evicts this very pod, as PodDisruptionBudgets allow it. A pod that is gone is evicted.
func Evict(ctx context.Context, c client.Client, p *corev1.Pod) error {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
	}
	switch err := c.SubResource("eviction").Create(ctx, p.DeepCopy(), eviction); {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // another pod may have its name
		return nil
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("%w: %w", ErrBudget, err)
	default:
		return fmt.Errorf("evicting pod %s/%s: %w", p.Namespace, p.Name, err)
	}
}

// Moved says how far the move of a volume from a node has come, step by step, and whether it is over: another
// node writes, or this one does not where several do. epoch is the number of the epoch in which the move began.
func Moved(v *ownership.Volume, node string, epoch uint64) (steps []string, over bool) {
	v = v.On(node)
	open := v.Primary.Phase.Open()
	if open && v.Primary.Node == node {
		return nil, false
	}
	steps = append(steps, fmt.Sprintf("node %s has let it go", node))
	if v.Sharing.ManyWriters {
		return goingOn(steps, v, node, true)
	}
	if !open || v.Epoch.Number <= epoch {
		return steps, false
	}
	steps = append(steps, fmt.Sprintf("node %s takes it in epoch %d", v.Primary.Node, v.Epoch.Number))
	if v.Primary.Phase != ownership.Active {
		return steps, false
	}
	return append(steps, fmt.Sprintf("node %s may write", v.Primary.Node)), true
}
