package health

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Status says how bad a condition is.
type Status string

// The kinds of conditions, as CSI has them.
const (
	// Degraded: the volume can be used, and may soon not be.
	Degraded Status = "Degraded"
	// Inaccessible: the volume cannot be used on this node at the moment.
	Inaccessible Status = "Inaccessible"
	// DataLoss: the data was on this node and is not.
	DataLoss Status = "DataLoss"
)

// ReasonPoolDegraded: the pool has a problem, and takes nothing new. The other reasons are those of the API.
const ReasonPoolDegraded = "PoolDegraded"

// Condition is one thing that is wrong with a volume.
type Condition struct {
	Status Status
	// Reason is a CamelCase word, and Message is for people.
	Reason, Message string
}

// Facts are what a node knows of one volume.
type Facts struct {
	// Record of the volume; nil if the node does not have it.
	Record *provision.Volume
	// Pool that has it, or should have it, as the latest report shows it. Read says whether the report has
	// read the pool.
	Pool provision.Pool
	Read bool
	// Wanted is the name of the pool that the Volume object asks for; empty if the object is not known.
	Wanted string
	// Unanswered is why the filesystem of the mounted volume gives no figures; nil if it does, or if the
	// volume is not mounted.
	Unanswered error
}

// Judge returns what is wrong with a volume, the worst first.
func Judge(f Facts) (found []Condition) {
	add := func(s Status, reason, format string, args ...any) {
		found = append(found, Condition{s, reason, fmt.Sprintf(format, args...)})
	}
	switch r := f.Record; {
	case r == nil && f.Read:
		add(DataLoss, v1alpha1.ReasonDeviceMissing, "pool %s no longer has the volume", f.Pool.Name)
	case r == nil:
		add(Inaccessible, v1alpha1.ReasonPoolMissing, "pool %s is not on the node, or does not answer", f.Pool.Name)
	case f.Wanted != "" && f.Wanted != r.Pool.Name:
		add(Inaccessible, v1alpha1.ReasonConflict, "the volume is in pool %s, and its Volume says pool %s: it may be another one of that name", r.Pool.Name, f.Wanted)
	case r.Problem != "":
		add(Inaccessible, v1alpha1.ReasonDeviceMissing, "%s", r.Problem)
	case r.Copying:
		add(Inaccessible, v1alpha1.ReasonCopying, "the volume is still being copied from %s%s", r.Source.Snapshot, r.Source.Volume)
	case f.Unanswered != nil:
		add(Inaccessible, v1alpha1.ReasonNoAnswer, "the filesystem does not answer: %v", f.Unanswered)
	}
	if f.Record == nil {
		return found
	}
	if f.Pool.Problem != "" {
		add(Degraded, ReasonPoolDegraded, "pool %s: %s", f.Pool.Name, f.Pool.Problem)
	}
	if reason, level := filling(f.Pool); reason != "" {
		add(Degraded, reason, "thin pool %s is filled to %d%% or more: writes stop when it is full", f.Pool.Name, level)
	}
	return found
}

// filling returns the reason and the percentage of the threshold that a thin pool has passed with its data or
// its metadata; no reason for other pools. The message names the threshold and not the fill, which would make
// a new condition of each percent.
func filling(p provision.Pool) (reason string, level int) {
	if !provision.TraitsOf(p.Type).FillsUp() || p.Total <= 0 {
		return "", 0
	}
	switch most := max(int(p.Fill.Data/max(p.Total/100, 1)), p.Fill.Metadata); {
	case most >= v1alpha1.NearlyFullPercent:
		return v1alpha1.ReasonThinPoolNearlyFull, v1alpha1.NearlyFullPercent
	case most >= v1alpha1.FillingPercent:
		return v1alpha1.ReasonThinPoolFilling, v1alpha1.FillingPercent
	}
	return "", 0
}
