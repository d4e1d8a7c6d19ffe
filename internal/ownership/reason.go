package ownership

import "fmt"

// Reason is the stable name of the reason of a decision. It appears unchanged in
// conditions, events, metrics and logs.
type Reason string

// The reasons. The text of each for the user is in messages.
const (
	Settled                  Reason = "Settled"
	RecordUnread             Reason = "RecordUnread"
	VolumeUnknown            Reason = "VolumeUnknown"
	VolumeDeleting           Reason = "VolumeDeleting"
	Mounted                  Reason = "Mounted"
	ReplicaMissing           Reason = "ReplicaMissing"
	HoldsTheCopy             Reason = "HoldsTheCopy"
	NodeOutOfService         Reason = "NodeOutOfService"
	NotAttached              Reason = "NotAttached"
	Restarted                Reason = "Restarted"
	LeaseLapsed              Reason = "LeaseLapsed"
	PrimaryElsewhere         Reason = "PrimaryElsewhere"
	ReplicaNotReady          Reason = "ReplicaNotReady"
	RecoveryPointUnreachable Reason = "RecoveryPointUnreachable"
	TakingOver               Reason = "TakingOver"
	PromisingEpoch           Reason = "PromisingEpoch"
	ShutOut                  Reason = "ShutOut"
	TakingReservation        Reason = "TakingReservation"
	OpeningCopy              Reason = "OpeningCopy"
	Activating               Reason = "Activating"
	OwnsEpoch                Reason = "OwnsEpoch"
	ClosingEpoch             Reason = "ClosingEpoch"
	NotWanted                Reason = "NotWanted"
	KeepingLastWrites        Reason = "KeepingLastWrites"
	NotOwner                 Reason = "NotOwner"
	CopyLost                 Reason = "CopyLost"
	Releasing                Reason = "Releasing"
	RecordBehind             Reason = "RecordBehind"
	Superseded               Reason = "Superseded"
	FilesystemShutDown       Reason = "FilesystemShutDown"
	StillHeld                Reason = "StillHeld"
	ShuttingOut              Reason = "ShuttingOut"
	IntervalPassed           Reason = "IntervalPassed"
	FirstSnapshot            Reason = "FirstSnapshot"
	Reporting                Reason = "Reporting"
	BranchKept               Reason = "BranchKept"
	RollingBack              Reason = "RollingBack"
	CatchingUp               Reason = "CatchingUp"
	CopyInUse                Reason = "CopyInUse"
	CopyCondemned            Reason = "CopyCondemned"
	StaleEpoch               Reason = "StaleEpoch"
	RivalEpoch               Reason = "RivalEpoch"
	NotInLineage             Reason = "NotInLineage"
	WouldDestroyBranch       Reason = "WouldDestroyBranch"
	WrongBase                Reason = "WrongBase"
	TooSmall                 Reason = "TooSmall"
	Growing                  Reason = "Growing"
	NothingNew               Reason = "NothingNew"
	Accepted                 Reason = "Accepted"
	CopyGone                 Reason = "CopyGone"
	Unneeded                 Reason = "Unneeded"
	TooFewOthers             Reason = "TooFewOthers"
	InTrash                  Reason = "InTrash"
	CountedOn                Reason = "CountedOn"
	LooksOrphaned            Reason = "LooksOrphaned"
	NotNeeded                Reason = "NotNeeded"
	LeaseHeld                Reason = "LeaseHeld"
	CutOff                   Reason = "CutOff"
	APIAway                  Reason = "APIAway"
	Unused                   Reason = "Unused"
	BrakeHeld                Reason = "BrakeHeld"
	NoProof                  Reason = "NoProof"
	FenceRequested           Reason = "FenceRequested"
	WriterFenced             Reason = "WriterFenced"
	NoCandidate              Reason = "NoCandidate"
	Settling                 Reason = "Settling"
	PromotionBlocked         Reason = "PromotionBlocked"
	WordNeeded               Reason = "WordNeeded"
	RecoveryPointLost        Reason = "RecoveryPointLost"
	TooFewReplicas           Reason = "TooFewReplicas"
	TooManyReplicas          Reason = "TooManyReplicas"
	BeingAttached            Reason = "BeingAttached"
	AttachmentFailed         Reason = "AttachmentFailed"
	NodeForsaken             Reason = "NodeForsaken"
	NoLongerAttached         Reason = "NoLongerAttached"
	SessionRenewed           Reason = "SessionRenewed"
	HolderUnknown            Reason = "HolderUnknown"
	RegistrationGone         Reason = "RegistrationGone"
	HolderOutdated           Reason = "HolderOutdated"
	ReservationForgotten     Reason = "ReservationForgotten"
	WantedHere               Reason = "WantedHere"
	GivingWay                Reason = "GivingWay"
	NoFreeShare              Reason = "NoFreeShare"
	NoFreeSlot               Reason = "NoFreeSlot"
)

// The verbs %[1]s node, %[2]v point, %[3]v epoch and %[4]d count are filled from Why.
var messages = map[Reason]string{
	Settled:                  "nothing to do",
	RecordUnread:             "the record of this volume could not be read",
	VolumeUnknown:            "there is no record of this volume; staging never creates one",
	VolumeDeleting:           "the volume is being deleted",
	Mounted:                  "mounted here in epoch %[3]v",
	ReplicaMissing:           "node %[1]s has no replica of the volume; schedule the pod to a node that has one",
	HoldsTheCopy:             "this node holds the only copy",
	NodeOutOfService:         "node %[1]s is declared out of service; remove the taint when it is healthy",
	Restarted:                "this node has restarted, or its lease has lapsed, since it opened epoch %[3]v; releasing it first",
	LeaseLapsed:              "node %[1]s must renew its lease before it may write",
	NotAttached:              "the disk is not attached to node %[1]s yet",
	PrimaryElsewhere:         "node %[1]s may still write in epoch %[3]v; it must unstage or be fenced first",
	ReplicaNotReady:          "the replica on node %[1]s is not ready; it is catching up",
	RecoveryPointUnreachable: "no reachable replica holds snapshot %[2]v, from which the volume must go on",
	TakingOver:               "opening epoch %[3]v at snapshot %[2]v",
	PromisingEpoch:           "refusing everything older than epoch %[3]v from now on",
	ShutOut:                  "node %[1]s holds the reservation for epoch %[3]v",
	TakingReservation:        "taking the reservation for epoch %[3]v",
	OpeningCopy:              "making the copy writable in epoch %[3]v",
	Activating:               "recording that epoch %[3]v may be written",
	OwnsEpoch:                "this node owns epoch %[3]v",
	ClosingEpoch:             "never writing into epoch %[3]v again",
	NotWanted:                "no pod uses the volume here any more",
	KeepingLastWrites:        "keeping the last writes in snapshot %[2]v",
	NotOwner:                 "this node does not own the volume",
	CopyLost:                 "the copy that node %[1]s had is gone",
	Releasing:                "releasing epoch %[3]v at snapshot %[2]v",
	RecordBehind:             "the record is older than what nodes know, probably from a backup; restoring epoch %[3]v of node %[1]s",
	Superseded:               "epoch %[3]v of node %[1]s has replaced this one",
	FilesystemShutDown:       "the filesystem on node %[1]s has shut itself down, because the disk failed its writes; the node gives epoch %[3]v up, and its pods are ended",
	StillHeld:                "node %[1]s gave epoch %[3]v up, and a pod there holds the volume until it ends",
	ShuttingOut:              "shutting node %[1]s out of epoch %[3]v at the device",
	FirstSnapshot:            "taking the first snapshot %[2]v, which is empty",
	IntervalPassed:           "taking snapshot %[2]v, the interval has passed",
	Reporting:                "reporting snapshot %[2]v of node %[1]s",
	BranchKept:               "keeping the data written up to %[2]v as a branch of its own",
	RollingBack:              "rolling back to snapshot %[2]v, the newest in common",
	CatchingUp:               "fetching snapshot %[2]v from node %[1]s",
	CopyInUse:                "the copy is in use",
	CopyCondemned:            "the copy is about to be destroyed",
	StaleEpoch:               "the sender is at epoch %[3]v, which has been replaced, and the later epoch left its snapshot out",
	RivalEpoch:               "the sender's epoch %[3]v has the number of ours and another id",
	NotInLineage:             "snapshot %[2]v is not part of the sender's own lineage",
	WouldDestroyBranch:       "a full copy would destroy snapshot %[2]v, which exists nowhere else for certain",
	WrongBase:                "the stream builds on snapshot %[2]v, which is not our newest",
	TooSmall:                 "the sender's copy is larger than ours, which must be made larger first",
	Growing:                  "making the copy on node %[1]s larger",
	NothingNew:               "snapshot %[2]v is not newer than ours",
	Accepted:                 "accepting snapshot %[2]v",
	CopyGone:                 "the replica on node %[1]s is gone",
	Unneeded:                 "the replica on node %[1]s is not needed; %[4]d others hold the same data",
	TooFewOthers:             "only %[4]d other replicas hold what this one holds",
	InTrash:                  "in the trash until the grace period ends",
	CountedOn:                "the volume counts on this copy again",
	LooksOrphaned:            "the record does not know this copy; it is kept, an administrator may delete it",
	NotNeeded:                "%[4]d snapshots are not needed",
	LeaseHeld:                "the lease is renewed",
	CutOff:                   "cut off from the API while others are not; stopping all writers",
	APIAway:                  "the API is away for %[4]d nodes alike; writers go on",
	Unused:                   "the volume was not used for a while",
	BrakeHeld:                "too many nodes look lost at once; nothing is promoted or rebuilt until that is explained",
	NoProof:                  "node %[1]s looks dead, but nothing proves that it cannot write; power it off or taint it out-of-service",
	FenceRequested:           "node %[1]s shall shut the writer out at the device; if that takes more than a minute, the log of its agent says why",
	WriterFenced:             "node %[1]s can not write into epoch %[3]v any more; going on from %[2]v",
	NoCandidate:              "no reachable replica holds a valid snapshot",
	Settling:                 "waiting for node %[1]s to answer: no node that answers has snapshot %[2]v",
	PromotionBlocked:         "going on from snapshot %[2]v would lose more than the policy allows; approve this snapshot or bring a better replica back",
	WordNeeded:               "node %[1]s looks dead, and this volume does not fail over by itself; ask for it with kubectl berth failover, or taint the node out-of-service if its machine is off",
	RecoveryPointLost:        "the nodes with the recovery point are lost; going on from %[2]v",
	TooFewReplicas:           "%[4]d replicas are present, building one on node %[1]s",
	TooManyReplicas:          "more replicas than wanted, removing the one on node %[1]s",
	BeingAttached:            "attaching the disk to node %[1]s",
	AttachmentFailed:         "attaching the disk to node %[1]s has failed %[4]d times",
	NodeForsaken:             "the cluster has no storage node %[1]s any more, and its attachment goes",
	NoLongerAttached:         "detaching the disk from node %[1]s",
	SessionRenewed:           "node %[1]s has a new session with the disk and takes its reservation for epoch %[3]v back",
	HolderUnknown:            "the disk is reserved for an epoch with number %[4]d, of which no node that answers knows",
	RegistrationGone:         "the disk does not let node %[1]s write in epoch %[3]v any more, because its session has ended, or another node has shut it out; the node gives the epoch up",
	HolderOutdated:           "the disk is reserved for an older epoch again; node %[1]s takes the reservation for epoch %[3]v back",
	ReservationForgotten:     "the target has forgotten the reservation of node %[1]s for epoch %[3]v, so shutting that node out would prove nothing; switch the node off and record that",
	WantedHere:               "a pod on node %[1]s wants the volume",
	GivingWay:                "the attachment on node %[1]s gives its slot to a volume that a pod is waiting for",
	NoFreeShare:              "the disk is attached to %[4]d nodes, as many as it allows; node %[1]s must wait for one of them",
	NoFreeSlot:               "no further disk can be attached to node %[1]s; its pod waits for a free slot",
}

// Message explains the decision to a person.
func (w Why) Message() string {
	format, ok := messages[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	// The trailing verb swallows the arguments that this message does not name.
	return fmt.Sprintf(format+"%[5]s", w.Node, w.Point, w.Epoch, w.Count, "")
}

// Reasons returns every reason, in no particular order.
func Reasons() []Reason {
	out := make([]Reason, 0, len(messages))
	for r := range messages {
		out = append(out, r)
	}
	return out
}
