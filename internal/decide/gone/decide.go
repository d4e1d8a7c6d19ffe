package gone

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
)

// The verbs of these decisions. decide.None is the fourth: nothing, for now.
const (
	// Mark: write the condition, and tell of it before if Tell is set.
	Mark decide.Verb = "Mark"
	// Retain: make the PersistentVolume one that is retained.
	Retain decide.Verb = "Retain"
	// Delete: delete the claim.
	Delete decide.Verb = "Delete"
)

// Answer is the next step on one Volume.
type Answer struct {
	// Decision has the reason and the message of the condition that Mark writes. For other verbs
	// they explain the step.
	decide.Decision
	// Status of the condition.
	Status metav1.ConditionStatus
	// Tell asks for events that say the same.
	Tell bool
	// Again is after how long to look again without an event; 0 is never.
	Again time.Duration
}

const (
	// LookAgain is the interval at which unfinished work is looked at.
	LookAgain = 30 * time.Second
	// LookSeldom is the interval at which a claim is looked at that is kept for now.
	LookSeldom = 5 * time.Minute
)

func to(verb decide.Verb, reason, message string) Answer {
	return Answer{Decision: decide.Decision{Verb: verb, Reason: reason, Message: message}}
}

// Decide says what to do about a Volume of a node that is, or was, gone.
func Decide(f Facts) Answer {
	m := MarkOf(f.Volume)
	releasing := m.Reason == v1alpha1.ReasonReleasingClaim
	switch {
	case f.Volume.DeletionTimestamp != nil:
		return to(decide.None, "", "the volume is being deleted")
	case releasing && f.PersistentVolume != nil && f.Claim == nil:
		return f.say(m, metav1.ConditionTrue, v1alpha1.ReasonClaimReleased, f.released())
	case releasing && f.Claim != nil && f.Claim.DeletionTimestamp != nil:
		a := to(decide.None, v1alpha1.ReasonReleasingClaim, "pods still use the claim")
		a.Again = LookAgain
		return a
	case f.Present:
		return f.returned(m)
	case m.Reason == v1alpha1.ReasonClaimReleased:
		return to(decide.None, m.Reason, m.Message) // one release per absence
	case !onlyOn(f.Volume, f.Node):
		return to(decide.None, "", "the volume has, or had, copies elsewhere")
	}
	if why, again := f.Kept(); why != "" {
		a := f.say(m, metav1.ConditionTrue, v1alpha1.ReasonClaimKept, f.gone()+why)
		a.Again = again
		return a
	}
	if f.Crowd.tooMany() {
		a := f.say(m, metav1.ConditionUnknown, v1alpha1.ReasonTooManyNodesGone, tooManyMessage)
		a.Again = LookAgain
		return a
	}
	return f.release(m)
}

// release decides the next step towards the deletion of a claim.
func (f Facts) release(m metav1.Condition) Answer {
	_, after := f.Class.NodeGone()
	if !Counting(m) {
		return f.say(m, metav1.ConditionTrue, v1alpha1.ReasonReleasePending, f.pending(f.Now.Add(after)))
	}
	due := m.LastTransitionTime.Add(after)
	left := max(due.Sub(f.Now), f.Watched.left(after))
	switch {
	case left > 0:
		a := f.say(m, metav1.ConditionTrue, v1alpha1.ReasonReleasePending, f.pending(due))
		a.Again = left
		return a
	case f.PersistentVolume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return to(Retain, v1alpha1.ReasonReleasingClaim, "the data must outlive the claim")
	case m.Reason != v1alpha1.ReasonReleasingClaim:
		return f.say(m, metav1.ConditionTrue, v1alpha1.ReasonReleasingClaim, f.gone()+"its claim "+f.ClaimName()+" is being deleted")
	}
	return to(Delete, v1alpha1.ReasonReleasingClaim, m.Message)
}

// Kept says why the claim stays, or nothing if it is to be released, and when to ask again.
func (f Facts) Kept() (why string, again time.Duration) {
	pv, claim := f.PersistentVolume, f.Claim
	policy, _ := f.Class.NodeGone()
	switch {
	case policy != v1alpha1.NodeGoneReleaseClaims:
		return "its PoolClass keeps claims", 0
	case pv == nil, pv.DeletionTimestamp != nil:
		return "it has no PersistentVolume, or none that stays", LookSeldom
	case claim == nil, claim.Spec.VolumeName != pv.Name:
		return "no claim is bound to its PersistentVolume", LookSeldom
	case claim.DeletionTimestamp != nil: // by another client, which may want the data deleted with it
		return "its claim is being deleted by others", LookSeldom
	}
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" {
		return "its claim belongs to pod " + owner.Name + ", and goes with it", LookSeldom
	}
	return "", 0
}

// returned decides for a node that has a Node object.
func (f Facts) returned(m metav1.Condition) Answer {
	if m.Status != metav1.ConditionTrue && m.Status != metav1.ConditionUnknown {
		return to(decide.None, "", "the node was not gone")
	}
	message := "node " + f.Node + " has a Node object again"
	if m.Reason == v1alpha1.ReasonClaimReleased {
		message += ", and the claim was released meanwhile; " + f.wayBack()
	}
	a := f.say(m, metav1.ConditionFalse, v1alpha1.ReasonNodeReturned, message)
	a.Tell = m.Reason == v1alpha1.ReasonClaimReleased
	return a
}

// say returns the step that writes a mark, or decide.None if the Volume has that mark already.
func (f Facts) say(m metav1.Condition, status metav1.ConditionStatus, reason, message string) Answer {
	a := to(Mark, reason, message)
	a.Status = status
	if m.Status == status && m.Reason == reason && m.Message == message {
		a.Verb = decide.None
		return a
	}
	// A new text alone is no reason to tell people again.
	a.Tell = told[reason] && (m.Status != status || m.Reason != reason)
	return a
}

// told holds the reasons that are also published as events.
var told = map[string]bool{v1alpha1.ReasonReleasePending: true, v1alpha1.ReasonClaimReleased: true, v1alpha1.ReasonTooManyNodesGone: true}
