package v1alpha1

// ConditionReady is the condition that sums up the others, on every Berth object.
// It is True while the object can do its job; otherwise its reason says why not.
const ConditionReady = "Ready"

// Reasons of Ready. The agent sets Ready on its StorageNode; the controller sets it on every
// PoolClass, and on a Volume after its first trouble. A Volume that is not Ready has the
// reason of its replica's entry, or ReasonNodeAway.
const (
	// ReasonReporting: the agent lists the node's pools.
	ReasonReporting = "Reporting"
	// ReasonProvisionerUnavailable: the agent cannot list the node's pools.
	ReasonProvisionerUnavailable = "ProvisionerUnavailable"
	// ReasonNodesServe: some node has a pool of the class.
	ReasonNodesServe = "NodesServe"
	// ReasonNoNode: no node has a pool of the class.
	ReasonNoNode = "NoNode"
	// ReasonReplicasReady: every replica of the volume is ready.
	ReasonReplicasReady = "ReplicasReady"
	// ReasonNodeAway: the node of a replica does not answer.
	ReasonNodeAway = "NodeAway"
)

// ConditionOrphaned is True on a StorageNode while its pools hold volumes or snapshots
// without an object, and on a Volume while neither a claim nor a PersistentVolume refers
// to its data.
const ConditionOrphaned = "Orphaned"

// Reasons of Orphaned.
const (
	// ReasonNoVolumeObject: data on the node has no object.
	ReasonNoVolumeObject = "NoVolumeObject"
	// ReasonClaimGone: the volume's claim was deleted.
	ReasonClaimGone = "ClaimGone"
	// ReasonReferred: a claim or a PersistentVolume refers to the volume.
	ReasonReferred = "Referred"
)

// Conditions of a StorageNode that describe its pools. Each but ConditionPoolsManaged is
// True while something is wrong, and absent otherwise.
const (
	// ConditionPoolsManaged is present while PoolClasses ask Berth for pools on the node. It is
	// False while one of these pools differs from the wish; its reason then says how.
	ConditionPoolsManaged = "PoolsManaged"
	// ConditionFilling: a thin pool of a class is filling up.
	ConditionFilling = "Filling"
	// ConditionSilent: the agent cannot read some pools, and can read others.
	ConditionSilent = "Silent"
	// ConditionUnwiped: the agent cannot wipe the remains of a deleted volume, which take space.
	ConditionUnwiped = "Unwiped"
	// ConditionPoolsLeftOut: the node has more pools, or a pool serves more classes, than fit
	// into a report.
	ConditionPoolsLeftOut = "PoolsLeftOut"
	// ConditionExposed: the machine may treat data that a pod wrote as its own. The reason names
	// the first finding.
	ConditionExposed = "Exposed"
)

// Reasons of these conditions.
const (
	// ReasonThinPoolFilling: a thin pool is more than FillingPercent full.
	ReasonThinPoolFilling = "ThinPoolFilling"
	// ReasonThinPoolNearlyFull: a thin pool is more than NearlyFullPercent full.
	ReasonThinPoolNearlyFull = "ThinPoolNearlyFull"
	// ReasonNoAnswer: the storage below the pools does not answer.
	ReasonNoAnswer = "NoAnswer"
	// ReasonWipingFails: the last attempt to wipe failed; the agent tries again.
	ReasonWipingFails = "WipingFails"
	// ReasonVolumeGroupOfPod: a pod wrote a volume group of its own.
	ReasonVolumeGroupOfPod = "VolumeGroupOfPod"
	// ReasonLVMReadsPodDevices: the machine's own LVM reads devices that pods write.
	ReasonLVMReadsPodDevices = "LVMReadsPodDevices"
	// ReasonTooMany: there are more than fit into a report.
	ReasonTooMany = "TooMany"
)

// ConditionNodeGone is on a Volume whose Node was deleted: True since then, Unknown while
// too many Nodes are gone for Berth to believe it, False once the Node is back.
const ConditionNodeGone = "NodeGone"

// Reasons of NodeGone.
const (
	// ReasonClaimKept: Berth leaves the claim as it is.
	ReasonClaimKept = "ClaimKept"
	// ReasonReleasePending: Berth releases the claim unless the Node returns.
	ReasonReleasePending = "ReleasePending"
	// ReasonReleasingClaim: Berth is deleting the claim.
	ReasonReleasingClaim = "ReleasingClaim"
	// ReasonClaimReleased: Berth has deleted the claim, and keeps the data.
	ReasonClaimReleased = "ClaimReleased"
	// ReasonTooManyNodesGone: so many Nodes are gone that Berth releases no claim.
	ReasonTooManyNodesGone = "TooManyNodesGone"
	// ReasonNodeReturned: the Node is back.
	ReasonNodeReturned = "NodeReturned"
)

// ConditionWaiting is True on a Volume with replicas while its next step waits: a failover for its
// proof or for a person, a pod for a free slot. The reason is one of internal/ownership, and the
// message says what to do. It is False once nothing waits any more.
const ConditionWaiting = "Waiting"

// ReasonNothingWaits is the reason of Waiting once nothing waits any more.
const ReasonNothingWaits = "NothingWaits"

// ConditionReplicaAway is True on a Volume with replicas while the node of one of them does not answer:
// it is off, or cut off. The message names the nodes. The record keeps what they said last, so a
// replica there may be called ready and be of no use.
const ConditionReplicaAway = "ReplicaAway"

// Reasons of ReplicaAway, beside ReasonNodeAway.
const (
	// ReasonNodesAnswer: the nodes of all replicas answer again.
	ReasonNodesAnswer = "NodesAnswer"
)
