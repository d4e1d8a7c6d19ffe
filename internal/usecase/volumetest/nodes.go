package volumetest

import "berth.dev/berth/api/v1alpha1"

// Nodes maps nodes to why they are away; those that are missing do not exist.
type Nodes map[string]string

// Away is empty, or says why a node cannot be expected to answer now.
func (n Nodes) Away(node string) string {
	away, exists := n[node]
	if !exists {
		return "the Node does not exist"
	}
	return away
}

// Labelled returns the node that a replica label stands for.
func (n Nodes) Labelled(label string) string {
	for node := range n {
		if v1alpha1.ReplicaLabel(node) == label {
			return node
		}
	}
	return ""
}
