package volumes

import (
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Request asks for a volume.
type Request struct {
	// Name is the CSI name; the volume's id is a function of it.
	Name string
	// Size that was asked for.
	Size Size
	Mode v1alpha1.VolumeMode
	// FSType of a Filesystem volume: empty for that of the source, or the default of the
	// class. Empty for a Block volume.
	FSType v1alpha1.FSType
	// MkfsOptions that its filesystem is made with; empty for a Block volume and a copy.
	MkfsOptions string
	// MountOptions of later mounts. They are no part of the volume: the request is
	// refused for them only if the volume could never be mounted.
	MountOptions []string
	// PoolClass that the volume comes from.
	PoolClass string
	// Claim that the volume is for, if known.
	Claim *v1alpha1.ClaimReference
	// Source, if set, is the volume or snapshot that this volume begins as a copy of.
	// The request may then have no FSType, and gets its source's.
	Source *v1alpha1.VolumeSource
	// Attachments says how a shared disk is used; nil for volumes of pools.
	Attachments *Attachments
	// Topology says where the volume may be.
	Topology Topology
	// Pool, if set, is the pool of the one allowed node that the volume comes from.
	// The scheduler that reserved room there sets it. It counts for the first
	// placement alone; if the volume is placed again the ledger chooses.
	Pool string
	// Reservation marks the request of a scheduler: the volume is made, and no caller
	// is told of it yet. See v1alpha1.ReservedAnnotation.
	Reservation bool
}

// Attachments says how a shared disk is used.
type Attachments struct {
	// MaxShares is how many nodes it can be attached to at once, and Factor how many of these there are while
	// a pod uses it.
	MaxShares, Factor int32
	// Yields: a standby gives its slot on a node to a volume that a pod waits for.
	Yields bool
	// Check has the whole filesystem checked after an unclean end.
	Check bool
	// OnDemand: an administrator decides about each failover.
	OnDemand bool
	// ManyWriters: several nodes write it at once.
	ManyWriters bool
}

// Sharing says how many nodes may write the volume at once.
func (r Request) Sharing() v1alpha1.Sharing {
	if r.Attachments != nil && r.Attachments.ManyWriters {
		return v1alpha1.Shared
	}
	return v1alpha1.Exclusive
}

// Feature names the feature that an agent needs to make the volume as requested;
// empty if any agent will do.
func (r Request) Feature() string {
	feature := provision.TraitsOfTree(string(r.FSType)).TreeFeature
	if feature == "" && r.MkfsOptions != "" {
		return v1alpha1.FeatureMkfsOptions
	}
	return feature
}

// Topology restricts and orders the nodes of a volume.
type Topology struct {
	// Allowed nodes; empty means all.
	Allowed []string
	// Preferred nodes, best first.
	Preferred []string
}

// Volume is a volume as its users see it.
type Volume struct {
	// ID is the CSI volume id.
	ID string
	// Capacity is the present size in bytes, or 0 while no node has answered.
	Capacity int64
	// Mode that it was made with.
	Mode v1alpha1.VolumeMode
	// ManyWriters: several nodes may write it at once.
	ManyWriters bool
	// FSType of a Filesystem volume.
	FSType v1alpha1.FSType
	// MkfsOptions that its filesystem was made with.
	MkfsOptions string
	// PoolClass that it comes from.
	PoolClass string
	// Source is the volume or snapshot that it began as a copy of, or nil.
	Source *v1alpha1.VolumeSource
	// Nodes that hold it; none for a shared disk, which moves.
	Nodes []string
}

// claimUID is the claim's UID, which the provisioner puts into the name.
func claimUID(csiName string) types.UID {
	if v1alpha1.VolumeName(csiName) != csiName {
		return ""
	}
	return types.UID(csiName[len("pvc-"):])
}

// View returns a Volume object as users see it.
func View(v *v1alpha1.Volume) Volume {
	out := Volume{ID: v.Name, Mode: v.Spec.VolumeMode, ManyWriters: v.Spec.Sharing == v1alpha1.Shared, FSType: v.Spec.FSType, MkfsOptions: v.Spec.MkfsOptions, PoolClass: v.Spec.PoolClass, Source: v.Spec.Source}
	for _, replica := range v.Spec.Replicas {
		out.Nodes = append(out.Nodes, replica.Node)
	}
	if out.Capacity = capacity(v); v.Spec.Replication.Attachments != nil {
		out.Capacity = v.Spec.Capacity.Value()
	}
	return out
}
