package v1alpha1

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	// LocalDriverName is the CSI driver for volumes that live on a node's own disks.
	LocalDriverName = "local.berth.dev"
	// DiskDriverName is the CSI driver for disks that several nodes can reach.
	DiskDriverName = "disk.berth.dev"

	// TopologyKey is the Node label, and the CSI topology segment, that names
	// the node a one-copy volume is bound to.
	TopologyKey = "topology.berth.dev/node"

	// VolumeFinalizer keeps a Volume until every replica is gone. The
	// controller alone adds and removes it.
	VolumeFinalizer = "berth.dev/replicas"

	// SnapshotFinalizer does the same for a Snapshot.
	SnapshotFinalizer = "berth.dev/snapshot"

	// LUNFinalizer keeps a LUN while a volume has it, so that its disk is not declared anew meanwhile.
	LUNFinalizer = "berth.dev/lun"

	// AgentLeasePrefix begins the name of the Lease that a node's agent renews, in the
	// namespace Berth is installed in. The name of the node follows.
	AgentLeasePrefix = "berth-agent-"

	// GuardLeasePrefix begins the name of the Lease that a node's guard renews, in the same
	// namespace. It is another one than the agent's: schedulers take a node without an agent for
	// silent, and a guard outlives its agent.
	GuardLeasePrefix = "berth-guard-"
	// BootAnnotation on that Lease is the boot id of the node, MembersAnnotation the set of storage
	// nodes over which the node counts its majority, and WatchdogAnnotation, if it is "true", says
	// that the machine is reset when its guard dies. SentAnnotation is when the guard sent the
	// renewal, as time since the machine booted. SilentAnnotation is for how long the node had no
	// answer to any renewal then: the API server may store renewals whose answers are lost.
	BootAnnotation     = "berth.dev/boot"
	MembersAnnotation  = "berth.dev/members"
	WatchdogAnnotation = "berth.dev/watchdog"
	SentAnnotation     = "berth.dev/sent"
	SilentAnnotation   = "berth.dev/silent"

	// AddressAnnotation on the Lease of an agent or of a guard is the address and the port at which its pod
	// answers other nodes and controllers. It is a hint: who answers is proved by a certificate.
	AddressAnnotation = "berth.dev/address"

	// ReservedAnnotation is on a Volume that a scheduler has made and CreateVolume has not
	// returned yet. While it is there, no claim has the volume. The node makes no filesystem on
	// it, and may remove the storage that it made for it once the volume is not needed. Data
	// that the node finds there is not covered: it is older than the annotation, or younger than
	// the backup that the annotation was restored from. CreateVolume removes the annotation
	// before it returns. That costs one more write for a reserved volume, and is the only proof
	// there is: a volume whose claim and PersistentVolume are gone otherwise looks the same
	// whether it was never used or an administrator is moving it to another claim.
	ReservedAnnotation = "berth.dev/reserved"

	// CapacityLabel is on the CSIStorageCapacity objects that agents publish. Its value is
	// CapacityLabelValue of the node's name.
	CapacityLabel = "agent.berth.dev/node"

	// VolumeLabelPrefix begins the key of the Node label that moves: the name of a Volume with
	// PlacementVolume follows, and the value is VolumeLabelValue. Its PersistentVolume has an affinity to
	// that label. Controllers set it on the Nodes from which the volume can be used. Kubernetes keeps
	// kubelets from setting labels of this domain (NodeRestriction).
	VolumeLabelPrefix = "berth.node-restriction.kubernetes.io/"
	VolumeLabelValue  = "true"

	// replicaLabelPrefix begins the label keys that name the nodes of a Volume.
	replicaLabelPrefix = "replica.berth.dev/"
)

// passThrough matches the CSI names that become object names unchanged: those that
// the external-provisioner derives from a claim's UID. VolumeName hashes all others,
// so that no CSI name can ever be a name that LVM, ZFS or Kubernetes reserves.
var passThrough = regexp.MustCompile(`^pvc-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// VolumeName returns the name of the Volume for a CSI volume name. It is a pure
// function, so that a repeated CreateVolume, the scheduler plugin and a restarted
// controller all find the same object. The name is also the CSI volume id.
func VolumeName(csiName string) string {
	if passThrough.MatchString(csiName) {
		return csiName
	}
	return "vol-" + digest(csiName, 32)
}

// volumeName matches the names that VolumeName can return.
var volumeName = regexp.MustCompile(`^(pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|vol-[a-z2-7]{32})$`)

// IsVolumeName says whether a CSI volume id can be one of Berth's. Check it before
// an id is used in a path, a device name or an argument.
func IsVolumeName(id string) bool { return volumeName.MatchString(id) }

// snapshotUID matches the CSI names that the csi-snapshotter derives from a
// VolumeSnapshot's UID.
var snapshotUID = regexp.MustCompile(`^snapshot-([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// SnapshotName returns the name of the Snapshot for a CSI snapshot name. It is a pure function,
// as VolumeName is. The name is also the CSI snapshot id. It does not begin with "snapshot", as
// the names of the csi-snapshotter do, because LVM reserves that.
func SnapshotName(csiName string) string {
	if parts := snapshotUID.FindStringSubmatch(csiName); parts != nil {
		return "snap-" + parts[1]
	}
	return "snap-" + digest(csiName, 32)
}

// snapshotName matches the names that SnapshotName can return.
var snapshotName = regexp.MustCompile(`^snap-([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z2-7]{32})$`)

// IsSnapshotName says whether a CSI snapshot id can be one of Berth's.
func IsSnapshotName(id string) bool { return snapshotName.MatchString(id) }

// ReplicaLabel returns the label key that marks a Volume or a Snapshot as concerning a node. It
// hashes the node name because a label key holds 63 characters and a node name
// up to 253. Agents select on it, so an agent's cost does not grow with the
// cluster.
func ReplicaLabel(node string) string { return replicaLabelPrefix + "n-" + digest(node, 32) }

// CapacityLabelValue stands for a node in the label CapacityLabel. It is a hash for the same
// reason as in ReplicaLabel.
func CapacityLabelValue(node string) string {
	sum := sha256.Sum256([]byte(node))
	return hex.EncodeToString(sum[:16])
}

func digest(s string, length int) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:length]
}
