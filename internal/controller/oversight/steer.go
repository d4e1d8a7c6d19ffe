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
	if q.facts.Record.Sharing.ManyWriters || !serve(q, want) { // where several write, a pod may go to any node
		want = append(want, open(q)...)
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
