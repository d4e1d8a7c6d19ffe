package v1alpha1

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ForgottenNodesAnnotation is on a Volume or a Snapshot. It names, separated by commas, nodes
// that are gone for good: an administrator said so. Once the object is deleted it does not wait
// for those nodes. The controller drops a name when there is a Node of that name. The data on a
// node that returns later is an orphan.
const ForgottenNodesAnnotation = "berth.dev/forgotten-nodes"

// ForgottenNodes returns the nodes that an object's annotation names.
func ForgottenNodes(o metav1.Object) []string {
	value := o.GetAnnotations()[ForgottenNodesAnnotation]
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// SetForgottenNodes writes the annotation, or removes it. It does not modify the object's map
// in place.
func SetForgottenNodes(o metav1.Object, nodes []string) {
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	delete(annotations, ForgottenNodesAnnotation)
	if len(nodes) > 0 {
		nodes = slices.Sorted(slices.Values(nodes))
		annotations[ForgottenNodesAnnotation] = strings.Join(slices.Compact(nodes), ",")
	}
	o.SetAnnotations(annotations)
}
