package v1alpha1

import "slices"

// Features of agents. The schema does not list them, because an agent may be newer than
// the schema and must still be able to report its features.
const (
	// FeatureCopies: the agent carries out Snapshots, and makes a Volume that has a
	// source as a copy of it. An agent without this feature makes the Volume blank.
	FeatureCopies = "Copies"

	// FeatureCopiesThick: the agent also does so for thick volumes of LVM. An agent that
	// has only FeatureCopies refuses those for good.
	FeatureCopiesThick = "CopiesThick"

	// FeatureMkfsOptions: the agent makes the filesystem of a Volume with the mkfs options
	// that the Volume names. An agent without this feature ignores them.
	FeatureMkfsOptions = "MkfsOptions"

	// FeatureAdoptedSnapshots: the agent never takes a Snapshot that was adopted. An
	// agent without this feature takes it again if its data is gone.
	FeatureAdoptedSnapshots = "AdoptedSnapshots"

	// FeatureDatasets: the agent makes a Volume of filesystem zfs as a dataset. An agent
	// without this feature makes a block device, and cannot mount it.
	FeatureDatasets = "Datasets"

	// FeatureDrivers: the agent leaves Volumes and Snapshots of other drivers alone, and their
	// data. An agent without this feature takes every Volume for one of the local driver.
	FeatureDrivers = "Drivers"
)

// AllFeatures returns the features of an agent of this version.
func AllFeatures() []string {
	return []string{FeatureCopies, FeatureCopiesThick, FeatureMkfsOptions, FeatureAdoptedSnapshots, FeatureDatasets, FeatureDrivers}
}

// Ability says for people what an agent with a feature does; empty for a feature that no caller
// asks for.
func Ability(feature string) string {
	switch feature {
	case FeatureCopies:
		return "makes snapshots and copies"
	case FeatureCopiesThick:
		return "makes snapshots and copies of thick volumes"
	case FeatureMkfsOptions:
		return "makes filesystems with options of mkfs"
	case FeatureDatasets:
		return "makes filesystems of ZFS"
	case FeatureDrivers:
		return "leaves the volumes of other drivers alone"
	default:
		return ""
	}
}

// Has says whether the node's agent reports a feature.
func (n *StorageNode) Has(feature string) bool { return slices.Contains(n.Status.Features, feature) }
