package trim

import (
	"fmt"
	"hash/fnv"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

// The verbs, beside decide.None.
const (
	// Note: keep since when the volume is to be trimmed.
	Note decide.Verb = "Note"
	// Trim: trim the filesystem now, if it is mounted.
	Trim decide.Verb = "Trim"
)

// The reasons of decisions.
const (
	// ReasonNotAsked: the class has no interval.
	ReasonNotAsked = "NotAsked"
	// ReasonNothingGained: the volume has no filesystem that Berth made, or its pool gains nothing.
	ReasonNothingGained = "NothingGained"
	// ReasonNew: the node keeps nothing about the volume.
	ReasonNew = "New"
	// ReasonClockWentBack: what is kept is of the future.
	ReasonClockWentBack = "ClockWentBack"
	// ReasonResting: the last try failed a short while ago.
	ReasonResting = "Resting"
	// ReasonNotDue: the volume's moment of this interval has been used, or lies before all that is kept.
	ReasonNotDue = "NotDue"
	// ReasonDue: the volume's moment has passed.
	ReasonDue = "Due"
)

// Volume is one with a replica on the node.
type Volume struct {
	// ID of the volume, and Pool that its replica here is in.
	ID, Pool string
	// Mode and FSType as its Volume says.
	Mode   v1alpha1.VolumeMode
	FSType v1alpha1.FSType
	// Interval of its class; zero if that asks for no trims.
	Interval time.Duration
}

// Kept is what a node keeps about the trims of a volume.
type Kept struct {
	// Since when the node knows that the volume is to be trimmed.
	Since time.Time `json:"since"`
	// Trimmed is when the last trim came to the end of the filesystem; zero if none did.
	Trimmed time.Time `json:"trimmed,omitzero"`
	// Next is the byte from which a trim goes on that came to no end.
	Next int64 `json:"next,omitempty"`
}

// Answer is whether a volume is trimmed, and why.
type Answer struct {
	decide.Decision
	// Moment is the latest one of the volume: of those that are due, the earliest is trimmed first.
	Moment time.Time
}

// facts are what a decision looks at. rests is until when the volume is not tried again.
type facts struct {
	Volume
	kept       Kept
	rests, now time.Time
	moment     time.Time
}

var rules = decide.Chain[facts, Answer]{
	{When: func(f facts) bool { return f.Interval <= 0 }, Then: none(ReasonNotAsked, "its class has no trimInterval")},
	{When: gainsNothing, Then: none(ReasonNothingGained, "its pool would gain nothing")},
	{When: func(f facts) bool { return f.kept.Since.IsZero() }, Then: note(ReasonNew, "it was not known before")},
	{When: func(f facts) bool { return f.kept.Since.After(f.now) || f.kept.Trimmed.After(f.now) }, Then: note(ReasonClockWentBack, "what is kept about it is of the future")},
	{When: func(f facts) bool { return f.now.Before(f.rests) }, Then: none(ReasonResting, "a try failed a short while ago")},
	{When: due, Then: func(f facts) Answer {
		return Answer{Decision: decide.Decision{Verb: Trim, Reason: ReasonDue, Message: fmt.Sprintf("it is due since %s", f.moment.UTC().Format(time.RFC3339))}}
	}},
	{Then: none(ReasonNotDue, "it is not due yet")},
}

// Decide decides on one volume. rests is the time before which it is not tried again; zero if there is none.
func Decide(v Volume, kept Kept, rests, now time.Time) Answer {
	f := facts{Volume: v, kept: kept, rests: rests, now: now}
	if v.Interval > 0 {
		f.moment = moment(v.ID, v.Interval, now)
	}
	a := rules.Decide(f)
	a.Moment = f.moment
	return a
}

func none(reason, message string) func(facts) Answer { return answer(decide.None, reason, message) }
func note(reason, message string) func(facts) Answer { return answer(Note, reason, message) }

func answer(verb decide.Verb, reason, message string) func(facts) Answer {
	return func(facts) Answer {
		return Answer{Decision: decide.Decision{Verb: verb, Reason: reason, Message: message}}
	}
}

// gainsNothing is true of a block device that a pod has as it is: only its pod knows which blocks are free.
func gainsNothing(f facts) bool {
	return f.Mode != v1alpha1.Filesystem || provision.ByItself(string(f.FSType)) != "" || !provision.TraitsOf(provision.TypeOf(f.Pool)).Trims
}

// due is true from a moment of the volume on until it is trimmed. A volume that was trimmed late, less than half
// an interval ago, waits for the next moment.
func due(f facts) bool {
	if f.kept.Trimmed.IsZero() {
		return f.moment.After(f.kept.Since)
	}
	return f.moment.Sub(f.kept.Trimmed) >= f.Interval/2
}

// moment is the latest moment of a volume that is not after now: one in each interval.
func moment(id string, interval time.Duration, now time.Time) time.Time {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))                                // a hash takes all bytes
	phase := int64(h.Sum64() % uint64(interval))              //nolint:gosec // smaller than the interval
	past := (now.UnixNano() - phase) % interval.Nanoseconds() // of a time before 1970 it is negative
	past = (past + interval.Nanoseconds()) % interval.Nanoseconds()
	return now.Add(-time.Duration(past))
}
