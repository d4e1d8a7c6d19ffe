package quarantine

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// Remnant is a Volume or a Snapshot that a node which is gone has, or may have, data of.
type Remnant struct {
	Kind, Name string
	// Deleting is whether it is being deleted, and waits for the node.
	Deleting bool

	object client.Object
}

// Remnants returns the objects of a node that is gone for good, as the caller says. Errors
// wrap ErrRefused if there is a Node of that name, or if no object names it.
func Remnants(ctx context.Context, c client.Reader, node string) ([]Remnant, error) {
	switch err := c.Get(ctx, client.ObjectKey{Name: node}, &corev1.Node{}); {
	case err == nil:
		return nil, refuse("there is a Node %s: delete it first, once its machine is shut down for good", node)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("looking for node %s: %w", node, err)
	}
	var volumes v1alpha1.VolumeList
	var snapshots v1alpha1.SnapshotList
	for _, list := range []client.ObjectList{&volumes, &snapshots} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing what node %s has: %w", node, err)
		}
	}
	var found []Remnant
	add := func(kind string, o client.Object, wanted []v1alpha1.ReplicaSpec, reported bool) {
		_, labelled := o.GetLabels()[v1alpha1.ReplicaLabel(node)]
		if labelled || reported || slices.ContainsFunc(wanted, func(r v1alpha1.ReplicaSpec) bool { return r.Node == node }) {
			found = append(found, Remnant{Kind: kind, Name: o.GetName(), Deleting: o.GetDeletionTimestamp() != nil, object: o})
		}
	}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		add("Volume", v, v.Spec.Replicas, v.Entry(node) != nil)
	}
	for i := range snapshots.Items {
		s := &snapshots.Items[i]
		add("Snapshot", s, s.Spec.Replicas, s.Entry(node) != nil)
	}
	if len(found) == 0 {
		return nil, refuse("nothing is known of a node %s: no Volume and no Snapshot names it", node)
	}
	return found, nil
}

// ForgetNode records on all Remnants of a node that the node is gone for good: none of them
// waits for the node once it is deleted. Data is not touched. A repeated call adds the
// objects that were made since.
func ForgetNode(ctx context.Context, c client.Client, node string) ([]Remnant, error) {
	return eachRemnant(ctx, c, node, func(nodes []string) []string {
		if slices.Contains(nodes, node) {
			return nodes
		}
		return append(slices.Clone(nodes), node)
	})
}

// RememberNode takes the record back from the objects that are still there.
func RememberNode(ctx context.Context, c client.Client, node string) ([]Remnant, error) {
	return eachRemnant(ctx, c, node, func(nodes []string) []string {
		return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == node })
	})
}

// eachRemnant changes the list of forgotten nodes on all Remnants of a node. An object that
// was deleted meanwhile is no error.
func eachRemnant(ctx context.Context, c client.Client, node string, change func([]string) []string) ([]Remnant, error) {
	found, err := Remnants(ctx, c, node)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(r.object), r.object); err != nil {
				return err
			}
			before := v1alpha1.ForgottenNodes(r.object)
			after := change(before)
			if len(after) == len(before) {
				return nil
			}
			v1alpha1.SetForgottenNodes(r.object, after)
			return c.Update(ctx, r.object)
		})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("writing down at %s %s that node %s is gone: %w", r.Kind, r.Name, node, err)
		}
	}
	return found, nil
}
