package usecase

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// labelPrefix begins the label keys of nodes.
var labelPrefix = strings.SplitAfter(v1alpha1.ReplicaLabel(""), "/")[0]

// Nodes tells which nodes can answer.
type Nodes interface {
	// Away is empty, or says why a node cannot be expected to answer now.
	Away(node string) string
	// Labelled returns the node that a replica label stands for, or empty if there is
	// no such Node.
	Labelled(label string) string
}

// Placed says where an object is, or is to be.
type Placed struct {
	Labels  map[string]string
	Wanted  []v1alpha1.ReplicaSpec
	Entries []Entry
}

// Entry is the report of a node.
type Entry struct {
	Node            string
	Gone, Failed    bool
	Reason, Message string
}

// PlacedVolume returns the places of a Volume. A node that the record of ownership counts has a part of it
// until its entry is Gone, whatever it reports. Of a volume with such a record the nodes report nothing else: once
// it is being deleted, a node that the record does not count has no part of it.
func PlacedVolume(v *v1alpha1.Volume) Placed {
	p := Placed{Labels: v.Labels, Wanted: v.Spec.Replicas}
	for i := range v.Status.Replicas {
		e := &v.Status.Replicas[i]
		p.Entries = append(p.Entries, Entry{e.Node, e.State == v1alpha1.ReplicaGone, e.State == v1alpha1.ReplicaFailed, e.Reason, e.Message})
	}
	if v.Spec.Replication.Kind != "" && v.DeletionTimestamp != nil {
		p.Wanted = slices.DeleteFunc(slices.Clone(p.Wanted), func(r v1alpha1.ReplicaSpec) bool { return !counted(v, r.Node) })
	}
	if v.Status.Ownership == nil {
		return p
	}
	for _, owned := range v.Status.Ownership.Replicas {
		i := slices.IndexFunc(p.Entries, func(e Entry) bool { return e.Node == owned.Node })
		switch {
		case owned.State == v1alpha1.OwnedGone:
		case i < 0:
			p.Entries = append(p.Entries, Entry{Node: owned.Node})
		default:
			p.Entries[i].Gone = false
		}
	}
	return p
}

// counted says whether the record of ownership counts a replica on a node.
func counted(v *v1alpha1.Volume, node string) bool {
	return v.Status.Ownership != nil && slices.ContainsFunc(v.Status.Ownership.Replicas, func(r v1alpha1.OwnedReplica) bool {
		return r.Node == node && r.State != v1alpha1.OwnedGone
	})
}

// PlacedSnapshot returns the places of a Snapshot.
func PlacedSnapshot(s *v1alpha1.Snapshot) Placed {
	p := Placed{Labels: s.Labels, Wanted: s.Spec.Replicas}
	for i := range s.Status.Replicas {
		e := &s.Status.Replicas[i]
		p.Entries = append(p.Entries, Entry{e.Node, e.State == v1alpha1.SnapshotGone, e.State == v1alpha1.SnapshotFailed, e.Reason, e.Message})
	}
	return p
}

// Said returns a node's message without the node's name: the error adds that.
func Said(node, message, reason string) string {
	return cmp.Or(strings.TrimPrefix(message, "node "+node+": "), reason)
}

// Holder is a node that has, or may have, a part of an object.
type Holder struct {
	// Node is empty if only its label is known and no Node has that name any more.
	Node string
	// Label key of the node.
	Label string
	// Entry is the report of the node, or nil.
	Entry *Entry
}

// Holders lists the nodes that may have a part of an object: those that the spec names,
// those that report an entry, and those that have a label and are away. The object was taken
// off the latter before they answered, and they may have made their part meanwhile. Such a
// node cannot report afterwards, since an agent adds its entry only where the spec names it.
// When it is back it removes its part, finding the object by its label or by a look at it.
func (p Placed) Holders(nodes Nodes) []Holder {
	byLabel := map[string]Holder{}
	for label := range p.Labels {
		if !strings.HasPrefix(label, labelPrefix) {
			continue
		}
		node := nodes.Labelled(label)
		if node == "" || nodes.Away(node) != "" {
			byLabel[label] = Holder{Node: node, Label: label}
		}
	}
	for _, replica := range p.Wanted {
		label := v1alpha1.ReplicaLabel(replica.Node)
		byLabel[label] = Holder{Node: replica.Node, Label: label}
	}
	for i := range p.Entries {
		entry := &p.Entries[i]
		label := v1alpha1.ReplicaLabel(entry.Node)
		byLabel[label] = Holder{Node: entry.Node, Label: label, Entry: entry}
		if entry.Gone {
			delete(byLabel, label)
		}
	}
	var holders []Holder
	for _, label := range slices.Sorted(maps.Keys(byLabel)) {
		holders = append(holders, byLabel[label])
	}
	return holders
}

// NodeLabels returns the labels that the object should have: the foreign ones, one
// for each holder, and one for each node that the spec names.
func (p Placed) NodeLabels(nodes Nodes) map[string]string {
	labels := map[string]string{}
	for label, value := range p.Labels {
		if !strings.HasPrefix(label, labelPrefix) {
			labels[label] = value
		}
	}
	for _, holder := range p.Holders(nodes) {
		labels[holder.Label] = p.Labels[holder.Label]
	}
	for _, replica := range p.Wanted {
		label := v1alpha1.ReplicaLabel(replica.Node)
		labels[label] = p.Labels[label]
	}
	return labels
}

// Removed judges an object that is being deleted. If the object is still there, the
// call is Done only when all its holders are away.
func (p Placed) Removed(nodes Nodes) Answer {
	var reachable string
	holders := p.Holders(nodes)
	for _, holder := range holders {
		if entry := holder.Entry; entry != nil && entry.Reason == v1alpha1.ReasonInUse {
			return Answer{State: Failed, Node: holder.Node, Class: provision.ErrInUse, Message: Said(entry.Node, entry.Message, entry.Reason)}
		}
		if holder.Node != "" && nodes.Away(holder.Node) == "" {
			reachable = holder.Node
		}
	}
	if len(holders) > 0 && reachable == "" {
		return Answer{State: Done}
	}
	return Answer{State: Waiting, Node: reachable}
}
