package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Replication says how many replicas a volume has, and of which kind.
//
// +kubebuilder:validation:XValidation:rule="has(self.attachments) == (has(self.kind) && self.kind == 'Attachments')",message="attachments is for kind Attachments, and required there"
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || has(self.kind)",message="failover is for volumes with a kind of replication"
type Replication struct {
	// factor is the number of replicas, the primary included.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Factor int32 `json:"factor"`

	// kind of the replicas. Without it the volume has one copy, whose node owns it by holding it.
	// +optional
	Kind ReplicationKind `json:"kind,omitempty"`

	// failover says when the volume may go on without its primary. Without it an administrator
	// decides each time.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// attachments says how a shared disk may be used.
	// +optional
	Attachments *Attachments `json:"attachments,omitempty"`
}

// ReplicationKind is how the replicas of a volume come to hold the same data.
//
// +kubebuilder:validation:Enum=Snapshots;Attachments
type ReplicationKind string

const (
	// ReplicationSnapshots: full copies that follow the primary by snapshots.
	ReplicationSnapshots ReplicationKind = "Snapshots"
	// ReplicationAttachments: one shared disk, attached to several nodes.
	ReplicationAttachments ReplicationKind = "Attachments"
)

// Failover is the policy of a volume whose primary is lost.
type Failover struct {
	// automatic allows a failover without a person, if there is proof that the old primary
	// cannot write.
	// +optional
	Automatic bool `json:"automatic,omitempty"`
	// maxDataLoss is the age of the recovery point beyond which a person must agree.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	MaxDataLoss *metav1.Duration `json:"maxDataLoss,omitempty"`
}

// Attachments says how a shared disk may be used.
type Attachments struct {
	// maxShares is how many nodes the disk can be attached to at once.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	MaxShares int32 `json:"maxShares"`
	// yields says that a standby gives its slot on a node to a primary of another volume.
	// +optional
	Yields bool `json:"yields,omitempty"`
	// persistent says that the target keeps reservations through its own loss of power.
	// +optional
	Persistent bool `json:"persistent,omitempty"`
	// disk that the volume is. Once it is set it never changes. No node uses a volume whose disk is
	// not known.
	// +optional
	Disk *SharedDisk `json:"disk,omitempty"`
	// blank says that the disk was empty when the volume got it. A filesystem that was not made for this
	// volume is what another one left: no node mounts it.
	// +optional
	Blank bool `json:"blank,omitempty"`
	// checkFilesystem has the whole filesystem checked before a mount if the writer before did not end
	// cleanly. Otherwise its journal is replayed, and nothing more is checked.
	// +optional
	CheckFilesystem bool `json:"checkFilesystem,omitempty"`
}

// SharedDisk names a disk that several nodes can reach.
//
// +structType=atomic
type SharedDisk struct {
	// handle is the name by which a provisioner finds the disk. Its scheme names the provisioner:
	// iscsi://PORTAL[,PORTAL]/IQN/LUN, or sim:///NAME for a simulated disk.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]{0,15}://[!-~]+$`
	Handle string `json:"handle"`
	// identity is what the disk must say of itself: its World Wide Name or its serial number. A node
	// does not use a disk at the handle that says something else.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[!-~]( ?[!-~])*$`
	Identity string `json:"identity"`
}
