package orphans

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// Record is data on the node as its pool has it.
type Record struct {
	// Name of the volume or the snapshot, and Pool that it is in.
	Name, Pool string
	// Size in bytes of the volume, or of the volume that the snapshot is of.
	Size int64
	// Known is how long this process has known it as an orphan.
	Known time.Duration
}

// The reasons of verdicts.
const (
	// ReasonKept: no administrator has said that it may go, and no deadline has passed.
	ReasonKept = "Kept"
	// ReasonForgotten: an administrator has named it in spec.forget.
	ReasonForgotten = "Forgotten"
	// ReasonExpired: no administrator has adopted it in time.
	ReasonExpired = "Expired"
	// ReasonChanged: the data on the node is not the data that was to be forgotten.
	ReasonChanged = "Changed"
	// ReasonStale: the entry of spec.forget is too old.
	ReasonStale = "Stale"
)

// Verdict says whether an orphan may be deleted, and why.
type Verdict struct {
	Delete          bool
	Reason, Message string
	// Again is after how long to ask again though nothing has happened; 0 is never.
	Again time.Duration
}

// unreported is how long to wait, at most, for an orphan to be in the report.
const unreported = time.Minute

// Judge decides on an orphan by its node's StorageNode; retention is how long orphans
// are kept, 0 is for ever. The caller has to check that the data has no object by now, and
// is not in use.
func Judge(n *v1alpha1.StorageNode, r Record, retention time.Duration, now time.Time) Verdict {
	reported := find(n, r)
	kept := Verdict{Reason: ReasonKept, Message: "it is kept until it is adopted or forgotten"}
	if reported == nil {
		kept.Again = min(unreported, retention)
		return kept
	}
	for _, f := range n.Spec.Forget {
		if f.Name == r.Name && f.Pool == r.Pool {
			verdict := heed(f, reported, r, now)
			if verdict.Delete {
				return verdict
			}
			kept.Reason, kept.Message = verdict.Reason, verdict.Message
			break
		}
	}
	if retention > 0 && reported.Reason == v1alpha1.OrphanNoObject {
		return expired(reported, r, retention, now, kept)
	}
	return kept
}

// Lost is data of an object that is being deleted, in a pool that is not on the node.
type Lost struct {
	// Name of the volume or the snapshot, and Pool that it was in.
	Name, Pool string
	// Deleted is the object's deletion timestamp.
	Deleted metav1.Time
}

// Waived says whether the StorageNode names the data in spec.forget, for that deletion. Then the
// object may go without its data. If the pool comes back, the data is an orphan.
func Waived(n *v1alpha1.StorageNode, l Lost, now time.Time) bool {
	return slices.ContainsFunc(n.Spec.Forget, func(f v1alpha1.ForgottenOrphan) bool {
		return f.Name == l.Name && f.Pool == l.Pool && f.Since.Equal(&l.Deleted) && now.Sub(f.At.Time).Abs() <= v1alpha1.ForgetValid
	})
}

// heed judges by the entry of spec.forget for an orphan of that name.
func heed(f v1alpha1.ForgottenOrphan, o *v1alpha1.Orphan, r Record, now time.Time) Verdict {
	if !f.Since.Equal(&o.Since) || f.Size.Value() != r.Size || o.Size.Value() != r.Size {
		return Verdict{Reason: ReasonChanged, Message: fmt.Sprintf(
			"the order to forget it is for %d bytes that are an orphan since %s; this data has %d bytes and is an orphan since %s: it is kept, forget it again",
			f.Size.Value(), f.Since.UTC().Format(time.RFC3339), r.Size, o.Since.UTC().Format(time.RFC3339))}
	}
	if age := now.Sub(f.At.Time).Abs(); age > v1alpha1.ForgetValid {
		return Verdict{Reason: ReasonStale, Message: fmt.Sprintf(
			"that it is to be forgotten was said at %s, and such a word is good for %s: it is kept, forget it again",
			f.At.UTC().Format(time.RFC3339), v1alpha1.ForgetValid)}
	}
	return Verdict{Delete: true, Reason: ReasonForgotten, Message: "it is named in spec.forget"}
}

// grace is how long a process must have known an orphan before it deletes it by its
// deadline. A report from an old backup may show a deadline that has passed, for data that
// was adopted since; and a clock may have jumped.
const grace = 24 * time.Hour

// expired judges by the deadline that was reported, or by the one that follows from the
// retention now if that is later.
func expired(o *v1alpha1.Orphan, r Record, retention time.Duration, now time.Time, kept Verdict) Verdict {
	if o.Deadline == nil || o.Size.Value() != r.Size {
		kept.Again = min(unreported, retention)
		return kept
	}
	deadline := o.Deadline.Time
	if later := o.Since.Add(retention); later.After(deadline) {
		deadline = later
	}
	if left := max(deadline.Sub(now), min(grace, retention)-r.Known); left > 0 {
		kept.Again = left
		return kept
	}
	return Verdict{Delete: true, Reason: ReasonExpired, Message: fmt.Sprintf("it was not adopted before %s", deadline.UTC().Format(time.RFC3339))}
}

// find returns the report of a record, nil if it is no orphan there.
func find(n *v1alpha1.StorageNode, r Record) *v1alpha1.Orphan {
	for _, p := range n.Status.Pools {
		if p.Name != r.Pool {
			continue
		}
		for _, i := range p.Inventory {
			if i.Volume == r.Name || i.Snapshot == r.Name {
				return i.Orphan
			}
		}
	}
	return nil
}
