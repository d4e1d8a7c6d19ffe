package volumes

import (
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
)

// labelPrefix begins the label keys of nodes.
var labelPrefix = strings.SplitAfter(v1alpha1.ReplicaLabel(""), "/")[0]

// Holder is a node that has, or may have, something of a volume.
type Holder struct {
	// Node, or empty when only its label is known and no Node bears that name any more.
	Node string
	// Label key of the node.
	Label string
	// Entry is what the node reports, or nil.
	Entry *v1alpha1.ReplicaStatus
}

// Holders lists the nodes that may have something of a volume: those that the
// spec wants, those that report something, and those that are labelled and away.
// The last are nodes that the volume was taken off before they answered: they
// may have carved it meanwhile. Such a node cannot report afterwards, since an
// agent adds its entry only where the spec names it; when it is back it removes
// what it carved, finding the volume by its label or by a look at the object.
func Holders(v *v1alpha1.Volume, nodes Nodes) []Holder {
	byLabel := map[string]Holder{}
	for label := range v.Labels {
		if !strings.HasPrefix(label, labelPrefix) {
			continue
		}
		node := nodes.Labelled(label)
		if node == "" || nodes.Away(node) != "" {
			byLabel[label] = Holder{Node: node, Label: label}
		}
	}
	for _, replica := range v.Spec.Replicas {
		label := v1alpha1.ReplicaLabel(replica.Node)
		byLabel[label] = Holder{Node: replica.Node, Label: label}
	}
	for i := range v.Status.Replicas {
		entry := &v.Status.Replicas[i]
		label := v1alpha1.ReplicaLabel(entry.Node)
		byLabel[label] = Holder{Node: entry.Node, Label: label, Entry: entry}
		if entry.State == v1alpha1.ReplicaGone {
			delete(byLabel, label)
		}
	}
	var holders []Holder
	for _, label := range slices.Sorted(maps.Keys(byLabel)) {
		holders = append(holders, byLabel[label])
	}
	return holders
}

// Labels are the node labels that a volume should have: one for each holder, and
// for each node that the spec wants.
func Labels(v *v1alpha1.Volume, nodes Nodes) map[string]string {
	labels := map[string]string{}
	for label, value := range v.Labels {
		if !strings.HasPrefix(label, labelPrefix) {
			labels[label] = value
		}
	}
	for _, holder := range Holders(v, nodes) {
		labels[holder.Label] = v.Labels[holder.Label]
	}
	for _, replica := range v.Spec.Replicas {
		label := v1alpha1.ReplicaLabel(replica.Node)
		labels[label] = v.Labels[label]
	}
	return labels
}
