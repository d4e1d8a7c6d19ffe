package volumes

import (
	"cmp"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// outcome is what an object says about a call that waits on it.
type outcome int

const (
	// waiting: there is no answer yet.
	waiting outcome = iota
	// done: the call has succeeded.
	done
	// refused: this node cannot take the volume, another one may.
	refused
	// failed: the call has failed.
	failed
)

// verdict is an outcome and, unless it is done, the node that it is about. What
// did not succeed has a class and the node's message.
type verdict struct {
	outcome outcome
	node    string
	class   error
	message string
}

// err is nil unless the verdict is that the call was refused or has failed.
func (v verdict) err() error {
	if v.class == nil {
		return nil
	}
	return fail(v.class, "node %s: %s", v.node, v.message)
}

// created judges a volume that is being created: done when every replica that
// the spec wants has answered the size that the spec wants.
func created(v *v1alpha1.Volume) verdict {
	for _, replica := range v.Spec.Replicas {
		if answer := replicaAnswer(v, replica.Node); answer.outcome != done {
			return answer
		}
	}
	return verdict{outcome: done}
}

func replicaAnswer(v *v1alpha1.Volume, node string) verdict {
	entry := v.Entry(node)
	if entry == nil || entry.State == v1alpha1.ReplicaGone || !answers(entry, v) {
		return verdict{outcome: waiting, node: node}
	}
	if entry.State == v1alpha1.ReplicaReady && holds(entry, v) {
		return verdict{outcome: done}
	}
	said := message(entry)
	switch entry.Reason {
	case v1alpha1.ReasonNoSpace, v1alpha1.ReasonPoolMissing:
		return verdict{refused, node, ErrUnplaceable, said}
	case v1alpha1.ReasonInvalid:
		return verdict{failed, node, provision.ErrInvalid, said}
	case v1alpha1.ReasonConflict:
		return verdict{failed, node, provision.ErrConflict, said}
	default:
		return verdict{failed, node, provision.ErrUnavailable, said}
	}
}

// message is what a node says, without its name: the error adds that.
func message(entry *v1alpha1.ReplicaStatus) string {
	return cmp.Or(strings.TrimPrefix(entry.Message, "node "+entry.Node+": "), entry.Reason)
}

// expanded judges a volume that is being expanded. A node without room leaves
// the replica ready and as large as it was; no other node can help, so that is
// final for this size.
func expanded(v *v1alpha1.Volume) verdict {
	answer := created(v)
	if answer.outcome != refused {
		return answer
	}
	class := provision.ErrUnavailable
	if v.Entry(answer.node).Reason == v1alpha1.ReasonNoSpace {
		class = ErrOutOfRange
	}
	return verdict{failed, answer.node, class, answer.message}
}

// answers says whether an entry is about the capacity that the spec has now.
func answers(entry *v1alpha1.ReplicaStatus, v *v1alpha1.Volume) bool {
	return entry.Requested != nil && entry.Requested.Cmp(v.Spec.Capacity) == 0
}

func holds(entry *v1alpha1.ReplicaStatus, v *v1alpha1.Volume) bool {
	return entry.Capacity != nil && entry.Capacity.Cmp(v.Spec.Capacity) >= 0
}

// Carved says whether a volume has, or once had, data on a node. What was never carved was never answered, and there is nothing to lose.
func Carved(v *v1alpha1.Volume) bool {
	return slices.ContainsFunc(v.Status.Replicas, func(entry v1alpha1.ReplicaStatus) bool {
		switch entry.State {
		case v1alpha1.ReplicaReady:
			return true
		case v1alpha1.ReplicaFailed:
			return entry.Capacity != nil || entry.Reason == v1alpha1.ReasonDeviceMissing
		default:
			return false
		}
	})
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
