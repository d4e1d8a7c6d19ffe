package check

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// Gather asks the API server for the facts about an installation, whose objects begin with
// a name.
func Gather(ctx context.Context, from client.Reader, namespace, name string) (Facts, error) {
	var f Facts
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-controller"}, &f.Controller); err != nil {
		return Facts{}, fmt.Errorf("asking for the controller: %w", err)
	}
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-agent"}, &f.Agents); err != nil {
		return Facts{}, fmt.Errorf("asking for the agents: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(f.Agents.Spec.Selector)
	if err != nil {
		return Facts{}, fmt.Errorf("reading which pods are agents: %w", err)
	}
	var pods corev1.PodList
	if err := from.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return Facts{}, fmt.Errorf("listing the pods of the agents: %w", err)
	}
	f.Pods = pods.Items
	var nodes v1alpha1.StorageNodeList
	if err := from.List(ctx, &nodes); err != nil {
		return Facts{}, fmt.Errorf("listing the nodes that have reported: %w", err)
	}
	var kubelets storagev1.CSINodeList
	if err := from.List(ctx, &kubelets); err != nil {
		return Facts{}, fmt.Errorf("listing the drivers that kubelets know: %w", err)
	}
	f.Nodes, f.Kubelets = nodes.Items, kubelets.Items
	return f, nil
}
