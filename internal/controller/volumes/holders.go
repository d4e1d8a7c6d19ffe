package volumes

import (
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/placement"
)

// labelPrefix begins the label keys of nodes.
var labelPrefix = strings.SplitAfter(v1alpha1.ReplicaLabel(""), "/")[0]

// Holder is a node that has, or may have, something of a volume.
type Holder struct {
	// Node, or empty when only its label is known.
	Node string
	// Label key of the node.
	Label string
	// Entry is what the node reports, or nil.
	Entry *v1alpha1.ReplicaStatus
}

// Holders lists the nodes that may have something of a volume: those that the
// spec wants, those that report something, and those that are labelled and have
// reported nothing. The last are nodes that the volume was taken off before
// they answered: they may have carved it meanwhile. Only a report of Gone takes
// a node off this list.
func Holders(v *v1alpha1.Volume) []Holder {
	byLabel := map[string]Holder{}
	for label := range v.Labels {
		if strings.HasPrefix(label, labelPrefix) {
			byLabel[label] = Holder{Label: label}
		}
	}
	for _, replica := range v.Spec.Replicas {
		label := v1alpha1.ReplicaLabel(replica.Node)
		byLabel[label] = Holder{Node: replica.Node, Label: label, Entry: placement.Entry(v, replica.Node)}
	}
	for i := range v.Status.Replicas {
		entry := &v.Status.Replicas[i]
		label := v1alpha1.ReplicaLabel(entry.Node)
		byLabel[label] = Holder{Node: entry.Node, Label: label, Entry: entry}
	}
	var holders []Holder
	for _, label := range slices.Sorted(maps.Keys(byLabel)) {
		if h := byLabel[label]; h.Entry == nil || h.Entry.State != v1alpha1.ReplicaGone {
			holders = append(holders, h)
		}
	}
	return holders
}
