package nodegone

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// Condition is on a Volume whose node was deleted: True since when the Node is gone,
// Unknown while too many nodes are gone for that to be believed, False once it is back.
const Condition = "NodeGone"

// The reasons of the condition.
const (
	// ReasonKept: the claim stays as it is.
	ReasonKept = "ClaimKept"
	// ReasonPending: the claim is released unless the node returns.
	ReasonPending = "ReleasePending"
	// ReasonReleasing: the claim is being deleted.
	ReasonReleasing = "ReleasingClaim"
	// ReasonReleased: the claim was deleted, and the data is kept.
	ReasonReleased = "ClaimReleased"
	// ReasonTooMany: so many nodes are gone that nothing is released.
	ReasonTooMany = "TooManyNodesGone"
	// ReasonReturned: the node is back.
	ReasonReturned = "NodeReturned"
)

// Step is what to do next about one Volume.
type Step string

const (
	// StepNone: nothing, for now.
	StepNone Step = "None"
	// StepMark: write the condition, and tell of it before if Tell is set.
	StepMark Step = "Mark"
	// StepRetain: make the PersistentVolume one that is retained.
	StepRetain Step = "Retain"
	// StepDelete: delete the claim.
	StepDelete Step = "Delete"
)

// Verdict is a step and why.
type Verdict struct {
	Step Step
	// Status, Reason and Message of the condition; of other steps, the latter two say why.
	Status          metav1.ConditionStatus
	Reason, Message string
	// Tell is whether events say the same.
	Tell bool
	// Again is when to look again though nothing has happened; 0 is never.
	Again time.Duration
}

const (
	// lookAgain is how often something is looked at that is under way.
	lookAgain = 30 * time.Second
	// lookSeldom is how often a claim is looked at that is kept as things stand.
	lookSeldom = 5 * time.Minute
)

// Decide says what to do about a Volume of a node that is, or was, gone.
func Decide(f Facts) Verdict {
	m := mark(f.Volume)
	releasing := m.Reason == ReasonReleasing
	switch {
	case f.Volume.DeletionTimestamp != nil:
		return Verdict{Step: StepNone, Message: "the volume is being deleted"}
	case releasing && f.PersistentVolume != nil && f.Claim == nil:
		return f.say(m, metav1.ConditionTrue, ReasonReleased, f.released())
	case releasing && f.Claim != nil && f.Claim.DeletionTimestamp != nil:
		return Verdict{Step: StepNone, Reason: ReasonReleasing, Message: "pods still use the claim", Again: lookAgain}
	case f.Present:
		return f.returned(m)
	case m.Reason == ReasonReleased:
		return Verdict{Step: StepNone, Reason: m.Reason, Message: m.Message} // once for each time that a node is gone
	case !onlyOn(f.Volume, f.Node):
		return Verdict{Step: StepNone, Message: "the volume has, or had, copies elsewhere"}
	}
	if why, again := f.kept(); why != "" {
		v := f.say(m, metav1.ConditionTrue, ReasonKept, f.gone()+why)
		v.Again = again
		return v
	}
	if f.Crowd.tooMany() {
		v := f.say(m, metav1.ConditionUnknown, ReasonTooMany, tooManyMessage)
		v.Again = lookAgain
		return v
	}
	return f.release(m)
}

// release takes the next step towards a claim's end.
func (f Facts) release(m metav1.Condition) Verdict {
	_, after := f.Class.NodeGone()
	if !counting(m) {
		return f.say(m, metav1.ConditionTrue, ReasonPending, f.pending(f.Now.Add(after)))
	}
	due := m.LastTransitionTime.Add(after)
	left := max(due.Sub(f.Now), f.Watched.left(after))
	switch {
	case left > 0:
		v := f.say(m, metav1.ConditionTrue, ReasonPending, f.pending(due))
		v.Again = left
		return v
	case f.PersistentVolume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return Verdict{Step: StepRetain, Reason: ReasonReleasing, Message: "the data must outlive the claim"}
	case m.Reason != ReasonReleasing:
		return f.say(m, metav1.ConditionTrue, ReasonReleasing, f.gone()+"its claim "+f.claimName()+" is being deleted")
	}
	return Verdict{Step: StepDelete, Reason: ReasonReleasing, Message: m.Message}
}

// kept says why the claim stays, or nothing if it is to be released, and when to ask again.
func (f Facts) kept() (why string, again time.Duration) {
	pv, claim := f.PersistentVolume, f.Claim
	policy, _ := f.Class.NodeGone()
	switch {
	case policy != v1alpha1.NodeGoneReleaseClaims:
		return "its PoolClass keeps claims", 0
	case pv == nil, pv.DeletionTimestamp != nil:
		return "it has no PersistentVolume, or none that stays", lookSeldom
	case claim == nil, claim.Spec.VolumeName != pv.Name:
		return "no claim is bound to its PersistentVolume", lookSeldom
	case claim.DeletionTimestamp != nil: // by others, who may want the data to go with it
		return "its claim is being deleted by others", lookSeldom
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" {
		return "its claim belongs to pod " + owner.Name + ", and goes with it", lookSeldom
	}
	return "", 0
}

// returned is for a node that is there.
func (f Facts) returned(m metav1.Condition) Verdict {
	if m.Status != metav1.ConditionTrue && m.Status != metav1.ConditionUnknown {
		return Verdict{Step: StepNone, Message: "the node was not gone"}
	}
	message := "node " + f.Node + " has a Node object again"
	if m.Reason == ReasonReleased {
		message += ", and the claim was released meanwhile; " + f.wayBack()
	}
	v := f.say(m, metav1.ConditionFalse, ReasonReturned, message)
	v.Tell = m.Reason == ReasonReleased
	return v
}

// say is the step to a mark, unless the Volume bears it.
func (f Facts) say(m metav1.Condition, status metav1.ConditionStatus, reason, message string) Verdict {
	v := Verdict{Step: StepMark, Status: status, Reason: reason, Message: message}
	if m.Status == status && m.Reason == reason && m.Message == message {
		v.Step = StepNone
		return v
	}
	// What is told once is not told again for its text alone.
	v.Tell = told[reason] && (m.Status != status || m.Reason != reason)
	return v
}

// told are the reasons that people are told of by events.
var told = map[string]bool{ReasonPending: true, ReasonReleased: true, ReasonTooMany: true}
