package volumes

import (
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// created judges a volume that is being created: done when every replica that
// the spec wants has answered the size that the spec wants.
func created(v *v1alpha1.Volume) usecase.Answer {
	for _, replica := range v.Spec.Replicas {
		if answer := replicaAnswer(v, replica.Node); answer.State != usecase.Done {
			return answer
		}
	}
	return usecase.Answer{State: usecase.Done}
}

// final states are answers.
var final = []v1alpha1.ReplicaState{v1alpha1.ReplicaReady, v1alpha1.ReplicaFailed}

func replicaAnswer(v *v1alpha1.Volume, node string) usecase.Answer {
	entry := v.Entry(node)
	// A copy that is under way has no final state, and is no answer yet.
	if entry == nil || !slices.Contains(final, entry.State) || !answers(entry, v) {
		return usecase.Answer{State: usecase.Waiting, Node: node}
	}
	if entry.State == v1alpha1.ReplicaReady && holds(entry, v) {
		return usecase.Answer{State: usecase.Done}
	}
	said := message(entry)
	switch entry.Reason {
	case v1alpha1.ReasonNoSpace, v1alpha1.ReasonPoolMissing:
		return usecase.Answer{State: usecase.Refused, Node: node, Class: ErrUnplaceable, Message: said}
	case v1alpha1.ReasonInvalid:
		return usecase.Answer{State: usecase.Failed, Node: node, Class: provision.ErrInvalid, Message: said}
	case v1alpha1.ReasonUnsupported:
		return usecase.Answer{State: usecase.Failed, Node: node, Class: provision.ErrUnsupported, Message: said}
	case v1alpha1.ReasonConflict:
		return usecase.Answer{State: usecase.Failed, Node: node, Class: provision.ErrConflict, Message: said}
	default:
		return usecase.Answer{State: usecase.Failed, Node: node, Class: provision.ErrUnavailable, Message: said}
	}
}

// message is a node's message, without the node's name.
func message(entry *v1alpha1.ReplicaStatus) string {
	return usecase.Said(entry.Node, entry.Message, entry.Reason)
}

// expanded judges a volume that is being expanded. A node without room leaves
// the replica ready and as large as it was; no other node can help, so that is
// final for this size.
func expanded(v *v1alpha1.Volume) usecase.Answer {
	answer := created(v)
	if answer.State != usecase.Refused {
		return answer
	}
	class := provision.ErrUnavailable
	if v.Entry(answer.Node).Reason == v1alpha1.ReasonNoSpace {
		class = ErrOutOfRange
	}
	return usecase.Answer{State: usecase.Failed, Node: answer.Node, Class: class, Message: answer.Message}
}

// answers says whether an entry is about the capacity that the spec has now.
func answers(entry *v1alpha1.ReplicaStatus, v *v1alpha1.Volume) bool {
	return entry.Requested != nil && entry.Requested.Cmp(v.Spec.Capacity) == 0
}

func holds(entry *v1alpha1.ReplicaStatus, v *v1alpha1.Volume) bool {
	return entry.Capacity != nil && entry.Capacity.Cmp(v.Spec.Capacity) >= 0
}

// Carved says whether there may be data of a volume: a node has, or once had, a replica or
// found data of its name, or it was adopted, or it has a shared disk. Create never returned
// a volume that was not carved, so there is nothing to lose.
func Carved(v *v1alpha1.Volume) bool {
	a := v.Spec.Replication.Attachments
	return a != nil && a.Disk != nil || v.Spec.Adopted || v.Found() != "" ||
		slices.ContainsFunc(v.Status.Replicas, func(entry v1alpha1.ReplicaStatus) bool { return entry.HasData() })
}

// capacity is the size that every wanted replica has, or 0 while one has none.
func capacity(v *v1alpha1.Volume) int64 {
	var least int64
	for i, replica := range v.Spec.Replicas {
		entry := v.Entry(replica.Node)
		if entry == nil || entry.Capacity == nil || entry.State == v1alpha1.ReplicaGone {
			return 0
		}
		if size := entry.Capacity.Value(); i == 0 || size < least {
			least = size
		}
	}
	return least
}
