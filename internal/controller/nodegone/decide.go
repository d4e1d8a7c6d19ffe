package nodegone

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// Step is the next action on one Volume.
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

// Verdict is a step and its reason.
type Verdict struct {
	Step Step
	// Status, Reason and Message are those of the condition. For other steps, Reason and
	// Message explain the step.
	Status          metav1.ConditionStatus
	Reason, Message string
	// Tell asks for events that say the same.
	Tell bool
	// Again is after how long to look again without an event; 0 is never.
	Again time.Duration
}

const (
	// lookAgain is the interval at which unfinished work is looked at.
	lookAgain = 30 * time.Second
	// lookSeldom is the interval at which a claim is looked at that is kept for now.
	lookSeldom = 5 * time.Minute
)

// Decide says what to do about a Volume of a node that is, or was, gone.
func Decide(f Facts) Verdict {
	m := mark(f.Volume)
	releasing := m.Reason == v1alpha1.ReasonReleasingClaim
	switch {
	case f.Volume.DeletionTimestamp != nil:
		return Verdict{Step: StepNone, Message: "the volume is being deleted"}
	case releasing && f.PersistentVolume != nil && f.Claim == nil:
		return f.say(m, metav1.ConditionTrue, v1alpha1.ReasonClaimReleased, f.released())
	case releasing && f.Claim != nil && f.Claim.DeletionTimestamp != nil:
		return Verdict{Step: StepNone, Reason: v1alpha1.ReasonReleasingClaim, Message: "pods still use the claim", Again: lookAgain}
	case f.Present:
		return f.returned(m)
	case m.Reason == v1alpha1.ReasonClaimReleased:
		return Verdict{Step: StepNone, Reason: m.Reason, Message: m.Message} // one release per absence
	case !onlyOn(f.Volume, f.Node):
		return Verdict{Step: StepNone, Message: "the volume has, or had, copies elsewhere"}
	}
	if why, again := f.kept(); why != "" {
		v := f.say(m, metav1.ConditionTrue, v1alpha1.ReasonClaimKept, f.gone()+why)
		v.Again = again
		return v
	}
	if f.Crowd.tooMany() {
		v := f.say(m, metav1.ConditionUnknown, v1alpha1.ReasonTooManyNodesGone, tooManyMessage)
		v.Again = lookAgain
		return v
	}
	return f.release(m)
}

// release decides the next step towards the deletion of a claim.
func (f Facts) release(m metav1.Condition) Verdict {
	_, after := f.Class.NodeGone()
	if !counting(m) {
		return f.say(m, metav1.ConditionTrue, v1alpha1.ReasonReleasePending, f.pending(f.Now.Add(after)))
	}
	due := m.LastTransitionTime.Add(after)
	left := max(due.Sub(f.Now), f.Watched.left(after))
	switch {
	case left > 0:
		v := f.say(m, metav1.ConditionTrue, v1alpha1.ReasonReleasePending, f.pending(due))
		v.Again = left
		return v
	case f.PersistentVolume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return Verdict{Step: StepRetain, Reason: v1alpha1.ReasonReleasingClaim, Message: "the data must outlive the claim"}
	case m.Reason != v1alpha1.ReasonReleasingClaim:
		return f.say(m, metav1.ConditionTrue, v1alpha1.ReasonReleasingClaim, f.gone()+"its claim "+f.claimName()+" is being deleted")
	}
	return Verdict{Step: StepDelete, Reason: v1alpha1.ReasonReleasingClaim, Message: m.Message}
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
	case claim.DeletionTimestamp != nil: // by another client, which may want the data deleted with it
		return "its claim is being deleted by others", lookSeldom
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" {
		return "its claim belongs to pod " + owner.Name + ", and goes with it", lookSeldom
	}
	return "", 0
}

// returned decides for a node that has a Node object.
func (f Facts) returned(m metav1.Condition) Verdict {
	if m.Status != metav1.ConditionTrue && m.Status != metav1.ConditionUnknown {
		return Verdict{Step: StepNone, Message: "the node was not gone"}
	}
	message := "node " + f.Node + " has a Node object again"
	if m.Reason == v1alpha1.ReasonClaimReleased {
		message += ", and the claim was released meanwhile; " + f.wayBack()
	}
	v := f.say(m, metav1.ConditionFalse, v1alpha1.ReasonNodeReturned, message)
	v.Tell = m.Reason == v1alpha1.ReasonClaimReleased
	return v
}

// say returns the step that writes a mark, or StepNone if the Volume has that mark already.
func (f Facts) say(m metav1.Condition, status metav1.ConditionStatus, reason, message string) Verdict {
	v := Verdict{Step: StepMark, Status: status, Reason: reason, Message: message}
	if m.Status == status && m.Reason == reason && m.Message == message {
		v.Step = StepNone
		return v
	}
	// A new text alone is no reason to tell people again.
	v.Tell = told[reason] && (m.Status != status || m.Reason != reason)
	return v
}

// told holds the reasons that are also published as events.
var told = map[string]bool{v1alpha1.ReasonReleasePending: true, v1alpha1.ReasonClaimReleased: true, v1alpha1.ReasonTooManyNodesGone: true}
