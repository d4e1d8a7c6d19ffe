package orphan

import (
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
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

// The reasons of decisions.
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

// Answer is whether an orphan is removed or kept, and why.
type Answer struct {
	decide.Decision
	// Again is after how long to ask again though nothing has happened; 0 is never.
	Again time.Duration
}

const (
	// unreported is how long to wait, at most, for an orphan to be in the report.
	unreported = time.Minute
	// grace is how long a process must have known an orphan before it deletes it by its
	// deadline. A report from an old backup may show a deadline that has passed, for data that
	// was adopted since; and a clock may have jumped.
	grace = 24 * time.Hour
)

// facts are what a decision looks at.
type facts struct {
	Record
	// reported is the report of the data, and order the entry of spec.forget for its name; nil
	// if there is none.
	reported  *v1alpha1.Orphan
	order     *v1alpha1.ForgottenOrphan
	retention time.Duration
	now       time.Time
}

var rules = decide.Chain[facts, Answer]{
	{When: forgotten, Then: func(facts) Answer { return remove(ReasonForgotten, "it is named in spec.forget") }},
	{When: expired, Then: func(f facts) Answer {
		deadline, _, _ := f.due()
		return remove(ReasonExpired, "it was not adopted before "+deadline.UTC().Format(time.RFC3339))
	}},
	{Then: keep},
}

// Decide decides on an orphan by its node's StorageNode; retention is how long orphans
// are kept, 0 is for ever. The caller has to check that the data has no object by now, and
// is not in use.
func Decide(n *v1alpha1.StorageNode, r Record, retention time.Duration, now time.Time) Answer {
	f := facts{Record: r, reported: find(n, r), retention: retention, now: now}
	if i := slices.IndexFunc(n.Spec.Forget, func(o v1alpha1.ForgottenOrphan) bool { return o.Name == r.Name && o.Pool == r.Pool }); i >= 0 {
		f.order = &n.Spec.Forget[i]
	}
	return rules.Decide(f)
}

func remove(reason, message string) Answer {
	return Answer{Decision: decide.Decision{Verb: decide.Remove, Reason: reason, Message: message}}
}

func keep(f facts) Answer {
	a := Answer{Decision: decide.Decision{Verb: decide.Keep, Reason: ReasonKept, Message: "it is kept until it is adopted or forgotten"}}
	if reason, message := f.unheeded(); reason != "" {
		a.Reason, a.Message = reason, message
	}
	switch _, left, dated := f.due(); {
	case f.reported == nil, f.expires() && !dated:
		a.Again = min(unreported, f.retention)
	case f.expires():
		a.Again = left
	}
	return a
}

// forgotten says whether an administrator has named this very orphan, and lately.
func forgotten(f facts) bool {
	reason, _ := f.unheeded()
	return f.reported != nil && f.order != nil && reason == ""
}

// unheeded says why the entry of spec.forget is not for this data, or not for now; empty if it is.
func (f facts) unheeded() (reason, message string) {
	order, o := f.order, f.reported
	if order == nil || o == nil {
		return "", ""
	}
	if !order.Since.Equal(&o.Since) || order.Size.Value() != f.Size || o.Size.Value() != f.Size {
		return ReasonChanged, fmt.Sprintf(
			"the order to forget it is for %d bytes that are an orphan since %s; this data has %d bytes and is an orphan since %s: it is kept, forget it again",
			order.Size.Value(), order.Since.UTC().Format(time.RFC3339), f.Size, o.Since.UTC().Format(time.RFC3339))
	}
	if age := f.now.Sub(order.At.Time).Abs(); age > v1alpha1.ForgetValid {
		return ReasonStale, fmt.Sprintf(
			"that it is to be forgotten was said at %s, and such a word is good for %s: it is kept, forget it again",
			order.At.UTC().Format(time.RFC3339), v1alpha1.ForgetValid)
	}
	return "", ""
}

// expired says whether no administrator has adopted the orphan in time.
func expired(f facts) bool {
	_, left, dated := f.due()
	return f.expires() && dated && left <= 0
}

// expires says whether the orphan is one that is not kept for ever.
func (f facts) expires() bool {
	return f.reported != nil && f.retention > 0 && f.reported.Reason == v1alpha1.OrphanNoObject
}

// due returns the deadline of this very data, as it was reported or as it follows from the
// retention now if that is later, and how long the data stays at least.
func (f facts) due() (deadline time.Time, left time.Duration, dated bool) {
	o := f.reported
	if o == nil || o.Deadline == nil || o.Size.Value() != f.Size {
		return time.Time{}, 0, false
	}
	deadline = o.Deadline.Time
	if later := o.Since.Add(f.retention); later.After(deadline) {
		deadline = later
	}
	return deadline, max(deadline.Sub(f.now), min(grace, f.retention)-f.Known), true
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
