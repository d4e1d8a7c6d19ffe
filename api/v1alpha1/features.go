package v1alpha1

import "slices"

// Features of agents. The schema does not list them: an agent may be newer than it,
// and must be able to report all the same.
const (
	// FeatureCopies: the agent carries out Snapshots, and makes a Volume that has a
	// source as a copy of it. One without this feature makes it blank.
	FeatureCopies = "Copies"

	// FeatureCopiesThick: the agent does so for thick volumes of LVM too. One that has
	// only FeatureCopies refuses those for good.
	FeatureCopiesThick = "CopiesThick"

	// FeatureMkfsOptions: the agent makes the filesystem of a Volume with the options
	// of mkfs that it names. One without this feature makes it without them.
	FeatureMkfsOptions = "MkfsOptions"

	// FeatureAdoptedSnapshots: the agent never takes a Snapshot that was adopted. One
	// without this feature takes it anew if the data should be gone.
	FeatureAdoptedSnapshots = "AdoptedSnapshots"

	// FeatureDatasets: the agent makes a Volume with the filesystem of ZFS itself. One
	// without this feature makes a block device, and cannot mount it.
	FeatureDatasets = "Datasets"
)

// AllFeatures are those of an agent of this version.
func AllFeatures() []string {
	return []string{FeatureCopies, FeatureCopiesThick, FeatureMkfsOptions, FeatureAdoptedSnapshots, FeatureDatasets}
}

// Has says whether the node's agent has said that it has a feature.
func (n *StorageNode) Has(feature string) bool { return slices.Contains(n.Status.Features, feature) }
