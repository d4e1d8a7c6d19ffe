package ledger

// Reason says in one word why something fits or does not. The order matters: where
// several pools refuse for different reasons, the ledger reports the last in this
// list, because that pool came closest.
type Reason uint8

// The reasons of a Verdict.
const (
	// Fits: there is room.
	Fits Reason = iota
	// NotSynced: the ledger has not seen everything yet.
	NotSynced
	// Invalid: the size asked for is not a size.
	Invalid
	// UnknownClass: no PoolClass of that name was observed.
	UnknownClass
	// NotAdmitted: the class allows no inline volumes in the pod's namespace.
	NotAdmitted
	// HeldElsewhere: another pod in flight holds the same claim on another node.
	HeldElsewhere
	// SiblingsElsewhere: the pod's other volumes are on other nodes.
	SiblingsElsewhere
	// ClosedToPod: the pod could not run on the node, so a standby there would be of no use.
	ClosedToPod
	// NotReported: the node has not reported its pools.
	NotReported
	// NodeNotReady: the node's agent cannot list its pools, or is silent.
	NodeNotReady
	// SourceElsewhere: the source that the volume is to be a copy of is not on the
	// node.
	SourceElsewhere
	// NotServed: no pool of the node serves the class.
	NotServed
	// OtherPool: the volume belongs in a pool that is not this one.
	OtherPool
	// PoolMissing: the pool was not in the last report.
	PoolMissing
	// PoolUnhealthy: the pool takes nothing new.
	PoolUnhealthy
	// OtherMedia: the pool is not on the media that the class asks for.
	OtherMedia
	// PoolFull: a thin pool's real fill forbids more promises.
	PoolFull
	// AgentTooOld: the node's agent lacks a feature that the volume needs.
	AgentTooOld
	// NoRoom: less is free than is needed.
	NoRoom
	// NotTogether: every volume fits alone, not all of them together.
	NotTogether
	// NoStandby: the volumes fit on the node, and there are not enough further nodes for their
	// other replicas.
	NoStandby
	// TooManyWays: the search for a way to fit all volumes gave up, after more than
	// sixteen thousand steps. It refuses then; it never promises too much.
	TooManyWays
)

var reasonNames = [...]string{
	"Fits", "NotSynced", "Invalid", "UnknownClass", "NotAdmitted", "HeldElsewhere", "SiblingsElsewhere", "ClosedToPod", "NotReported", "NodeNotReady", "SourceElsewhere", "NotServed",
	"OtherPool", "PoolMissing", "PoolUnhealthy", "OtherMedia", "PoolFull", "AgentTooOld", "NoRoom", "NotTogether", "NoStandby", "TooManyWays",
}

var reasonMessages = [...]string{
	"fits",
	"the ledger is not synced yet",
	"the requested size is not valid",
	"the PoolClass does not exist",
	"the PoolClass allows no inline volumes in the pod's namespace",
	"another pod is being scheduled with the same claim on another node",
	"the pod's other volumes have their replicas on other nodes",
	"the pod could not run on the node",
	"the node has not reported its pools",
	"the node's berth-agent is silent or not ready",
	"what the volume is made from is on another node",
	"the node has no pool of the class",
	"the volume belongs in another pool",
	"the pool is missing",
	"the pool is unhealthy and takes nothing new",
	"the pool is on other media",
	"the thin pool is too full",
	"the node's berth-agent is too old to make the volume as it is asked for: upgrade it",
	"not enough free space",
	"not enough free space for all of the pod's volumes together",
	"not enough further nodes for the replicas",
	"too many ways to place the pod's volumes",
}

// String is the reason in CamelCase, as conditions and metrics show it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "Unknown"
}

// Message is the reason for people: lower case, no full stop.
func (r Reason) Message() string {
	if int(r) < len(reasonMessages) {
		return reasonMessages[r]
	}
	return "unknown reason"
}

// Verdict is the answer to whether demands fit on a node.
type Verdict struct {
	Reason Reason
	// Owner is the demand that the reason is about; the zero Owner when it is
	// about all of them.
	Owner Owner
}

// Fits is whether everything fits.
func (v Verdict) Fits() bool { return v.Reason == Fits }
