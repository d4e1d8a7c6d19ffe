package oversight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// usable are the nodes from which a volume can be used, in order: those with a ready replica, and the
// owner, under whose mount the label stays. A fenced node is none until it says itself that it has stopped:
// its entry says Ready as it did before the fence. A replica that next, the record that is about to be
// written, removes is none any more.
func usable(v, next *ownership.Volume) (nodes []string) {
	for i := range v.Replicas {
		e := &v.Replicas[i]
		primary := v.Primary.Node == e.Node
		ready := e.State == ownership.Ready && !(primary && v.Primary.Phase == ownership.Fenced && e.Unstaged != v.Epoch)
		if !ready && !(primary && v.Primary.Phase.Open()) {
			continue
		}
		if next != nil {
			if then, ok := next.Replica(e.Node); !ok || then.State == ownership.Removing {
				continue
			}
		}
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// open are the nodes from which a shared disk can be used that can be used from none yet, in order. A pod's
// node that was chosen gets the attachment, and keeps the label meanwhile: the kubelet compares it again. As
// long as a pod waits for a node, each node is as good that can take an attachment. No label is set for a
// volume that no pod wants: there may be many of them, and a Node has room for few labels.
func open(q *question) (nodes []string) {
	f := &q.facts
	if !f.Record.Kind.Traits().Attaches || f.Record.Deleting {
		return nil
	}
	waits := slices.ContainsFunc(q.pods, func(p corev1.Pod) bool { return p.Spec.NodeName == "" && !ended(&p) })
	for i := range f.Nodes {
		n := &f.Nodes[i]
		e, has := f.Record.Replica(n.Name)
		fenced := f.Record.Primary.Phase == ownership.Fenced && f.Record.Primary.Node == n.Name && e.Unstaged != f.Record.Epoch
		switch {
		case n.Lost, fenced:
		case slices.Contains(f.Wanted, n.Name), waits && n.Fits && (has || n.Slots > 0):
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// labelled are the volumes whose labels a Node has.
func labelled(node client.Object) map[string]bool {
	volumes := map[string]bool{}
	for key := range node.GetLabels() {
		if volume, is := strings.CutPrefix(key, v1alpha1.VolumeLabelPrefix); is {
			volumes[volume] = true
		}
	}
	return volumes
}

// steer is E1: it moves the label of the volume to the nodes from which it can be used.
func (r *Reconciler) steer(ctx context.Context, q *question, a *ownership.Action) error {
	if q.volume.Spec.Placement != v1alpha1.PlacementVolume {
		return nil
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	want, key := usable(q.facts.Record, a.Next), v1alpha1.VolumeLabelPrefix+q.volume.Name
	if len(want) == 0 {
		want = open(q)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		value, has := n.Labels[key]
		wants := slices.Contains(want, n.Name)
		if has == wants && (!has || value == v1alpha1.VolumeLabelValue) {
			continue
		}
		if err := r.label(ctx, n.Name, key, wants); err != nil {
			return err
		}
	}
	return nil
}

// label sets or removes one label of a Node. The patch changes nothing else, whatever the Node is by now.
func (r *Reconciler) label(ctx context.Context, node, key string, set bool) error {
	labels := map[string]any{key: nil}
	if set {
		labels[key] = v1alpha1.VolumeLabelValue
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling node %s: %w", node, err)
	}
	if !apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("volume's label moved", "node", node, "label", key, "set", set)
	}
	return nil
}
