package v1alpha1

import "slices"

// Features of agents. The schema does not list them: an agent may be newer than it,
// and must be able to report all the same.
const (
	// FeatureCopies: the agent carries out Snapshots, and makes a Volume that has a
	// source as a copy of it. One without this feature makes it blank.
	FeatureCopies = "Copies"

	// FeatureMkfsOptions: the agent makes the filesystem of a Volume with the options
	// of mkfs that it names. One without this feature makes it without them.
	FeatureMkfsOptions = "MkfsOptions"
)

// Has says whether the node's agent has said that it has a feature.
func (n *StorageNode) Has(feature string) bool { return slices.Contains(n.Status.Features, feature) }
