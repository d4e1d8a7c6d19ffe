package v1alpha1

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ForgottenNodesAnnotation is on a Volume or a Snapshot, and names nodes that are gone for
// good by the word of an administrator, with commas between them. Once the object is
// deleted it does not wait for those nodes. The word ends when there is a Node of that name; of
// a node that returns later the data is an orphan.
const ForgottenNodesAnnotation = "berth.dev/forgotten-nodes"

// ForgottenNodes are the nodes that an object's annotation names.
func ForgottenNodes(o metav1.Object) []string {
	value := o.GetAnnotations()[ForgottenNodesAnnotation]
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// SetForgottenNodes writes the annotation, or takes it off. The object's map is not changed.
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
