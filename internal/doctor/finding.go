package doctor

import (
	"cmp"
	"slices"
	"strings"
)

// Severity says how urgent a finding is.
type Severity string

// The severities.
const (
	// Error: data cannot be used, or can be lost.
	Error Severity = "Error"
	// Warning: something waits, or is not known.
	Warning Severity = "Warning"
	// Info: data takes room, and nothing uses it.
	Info Severity = "Info"
)

// ID names a kind of disagreement.
type ID string

// The kinds of disagreement, along the way from the claim to the node.
const (
	ClaimLost     ID = "ClaimLost"
	ClaimMisbound ID = "ClaimMisbound"

	SharedHandle     ID = "SharedHandle"
	VolumeLost       ID = "VolumeLost"
	DriverMismatch   ID = "DriverMismatch"
	VolumeGoing      ID = "VolumeGoing"
	SizeMismatch     ID = "SizeMismatch"
	ModeMismatch     ID = "ModeMismatch"
	AffinityMismatch ID = "AffinityMismatch"
	ClaimGone        ID = "ClaimGone"
	NotReclaimed     ID = "NotReclaimed"

	Unreferenced ID = "Unreferenced"
	Unplaced     ID = "Unplaced"
	NodeGone     ID = "NodeGone"
	NotAnswered  ID = "NotAnswered"
	DataMissing  ID = "DataMissing"
	PoolMissing  ID = "PoolMissing"
	Conflict     ID = "Conflict"
	NotMade      ID = "NotMade"
	PoolMismatch ID = "PoolMismatch"
	NotGrown     ID = "NotGrown"
	Leftover     ID = "Leftover"
	Undeleted    ID = "Undeleted"

	ContentLost         ID = "ContentLost"
	SnapshotMisbound    ID = "SnapshotMisbound"
	SharedSnapshot      ID = "SharedSnapshot"
	SnapshotLost        ID = "SnapshotLost"
	SnapshotGoing       ID = "SnapshotGoing"
	ContentReleased     ID = "ContentReleased"
	ContentNotReclaimed ID = "ContentNotReclaimed"
	NotTaken            ID = "NotTaken"

	ObjectLost   ID = "ObjectLost"
	SecondCopy   ID = "SecondCopy"
	NodeAway     ID = "NodeAway"
	NodeNotReady ID = "NodeNotReady"
)

// severities has a row for each kind of disagreement.
var severities = map[ID]Severity{
	ClaimLost: Error, ClaimMisbound: Error,
	SharedHandle: Error, VolumeLost: Error, DriverMismatch: Error, VolumeGoing: Error, SizeMismatch: Warning,
	ModeMismatch: Error, AffinityMismatch: Error, ClaimGone: Info, NotReclaimed: Warning,
	Unreferenced: Info, Unplaced: Warning, NodeGone: Error, NotAnswered: Warning, DataMissing: Error, PoolMissing: Error,
	Conflict: Error, NotMade: Warning, PoolMismatch: Error, NotGrown: Warning, Leftover: Info, Undeleted: Warning,
	ContentLost: Error, SnapshotMisbound: Error, SharedSnapshot: Error, SnapshotLost: Error, SnapshotGoing: Error,
	ContentReleased: Info, ContentNotReclaimed: Warning, NotTaken: Warning,
	ObjectLost: Error, SecondCopy: Warning, NodeAway: Warning, NodeNotReady: Warning,
}

// IDs returns all kinds of disagreement, sorted.
func IDs() []ID {
	var all []ID
	for id := range severities {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// Finding is one disagreement.
type Finding struct {
	ID       ID       `json:"id"`
	Severity Severity `json:"severity"`
	// Kind, Namespace and Name of the object that is wrong, or that the lost object had.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Node that the finding is about; empty for none.
	Node string `json:"node,omitempty"`
	// Claim that has, or had, the data, as NAMESPACE/NAME; empty if it is not known.
	Claim   string `json:"claim,omitempty"`
	Message string `json:"message"`
	// Next has the commands of the way out, in their order.
	Next []string `json:"next"`
}

// Subject names the object of a finding in words.
func (f Finding) Subject() string {
	s := f.Kind + " " + strings.TrimPrefix(f.Namespace+"/"+f.Name, "/")
	if f.Claim != "" {
		s += " of claim " + f.Claim
	}
	if f.Node != "" && f.Kind != "StorageNode" {
		s += " on node " + f.Node
	}
	return s
}

// order sorts findings: the urgent ones first, then by object.
func order(a, b Finding) int {
	return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node))
}

func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// Confirmed returns the findings of the second look that the first look had too. The lists of one
// look come from several requests: an object that is made between them looks as if its
// counterpart was lost.
func Confirmed(first, second []Finding) []Finding {
	confirmed := []Finding{}
	for _, f := range second {
		if slices.ContainsFunc(first, func(g Finding) bool { return order(f, g) == 0 && f.Kind == g.Kind }) {
			confirmed = append(confirmed, f)
		}
	}
	return confirmed
}
