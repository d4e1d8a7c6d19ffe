package snapshots

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// judge gives up on a node that is away and has not answered.
func (s *Service) judge(o *v1alpha1.Snapshot) usecase.Answer {
	answer := taken(o)
	if answer.State != usecase.Waiting {
		return answer
	}
	if away := s.nodes.Away(answer.Node); away != "" {
		return usecase.Answer{State: usecase.Failed, Node: answer.Node, Class: provision.ErrUnavailable, Message: away}
	}
	return answer
}

// classes maps reasons to errors: the reasons why a node did not take a snapshot and,
// as things stand, will not. After any other reason the node tries again by itself.
var classes = map[string]error{
	v1alpha1.ReasonNoSpace:     provision.ErrNoSpace,
	v1alpha1.ReasonInvalid:     provision.ErrInvalid,
	v1alpha1.ReasonConflict:    provision.ErrConflict,
	v1alpha1.ReasonUnsupported: provision.ErrUnsupported,
}

// taken judges a snapshot that is being taken: done when every node that the spec
// names has taken it. A refused one was not taken, and Create withdraws it.
func taken(o *v1alpha1.Snapshot) usecase.Answer {
	for _, replica := range o.Spec.Replicas {
		entry := o.Entry(replica.Node)
		if entry == nil || entry.State == v1alpha1.SnapshotGone {
			return usecase.Answer{State: usecase.Waiting, Node: replica.Node}
		}
		if entry.State != v1alpha1.SnapshotFailed {
			continue
		}
		answer := usecase.Answer{
			State: usecase.Failed, Node: replica.Node, Class: provision.ErrUnavailable,
			Message: usecase.Said(entry.Node, entry.Message, entry.Reason),
		}
		if class := classes[entry.Reason]; class != nil && entry.Taken == nil {
			answer.State, answer.Class = usecase.Refused, class
		}
		return answer
	}
	return usecase.Answer{State: usecase.Done}
}
