package upkeep

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
)

// forgotten returns the replica labels of nodes that an object under deletion need not wait for:
// an administrator said that they are gone for good, and the API server has no such Node. This
// deletes only the object: a node that returns finds no object, and keeps its data as an orphan.
func forgotten(ctx context.Context, live client.Reader, nodes usecase.Nodes, o client.Object) (map[string]bool, error) {
	if o.GetDeletionTimestamp() == nil {
		return nil, nil
	}
	labels := map[string]bool{}
	for _, node := range v1alpha1.ForgottenNodes(o) {
		label := v1alpha1.ReplicaLabel(node)
		if nodes.Labelled(label) != "" {
			continue
		}
		switch err := live.Get(ctx, types.NamespacedName{Name: node}, &corev1.Node{}); {
		case apierrors.IsNotFound(err):
			labels[label] = true
		case err != nil:
			return nil, fmt.Errorf("reading node %s: %w", node, err)
		}
	}
	return labels, nil
}

// endWords removes nodes that exist again from the annotation of forgotten nodes, and says
// whether there were any. The annotation is about the absence that the administrator knew of,
// not about the next one.
func endWords(o client.Object, nodes usecase.Nodes) bool {
	words := v1alpha1.ForgottenNodes(o)
	var kept []string
	for _, node := range words {
		if nodes.Labelled(v1alpha1.ReplicaLabel(node)) == "" {
			kept = append(kept, node)
		}
	}
	if len(kept) == len(words) {
		return false
	}
	v1alpha1.SetForgottenNodes(o, kept)
	return true
}
