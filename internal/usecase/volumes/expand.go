package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/usecase"
)

// Expand makes a volume at least size.Required bytes large and returns it. A node
// without room is ErrOutOfRange, which is final for this size: the replica stays as
// large as it was, and a smaller request can still be met. Volumes do not shrink.
func (s *Service) Expand(ctx context.Context, id string, size Size) (Volume, error) {
	if err := size.Check(); err != nil {
		return Volume{}, err
	}
	unlock, err := s.objects.Lock(id)
	if err != nil {
		return Volume{}, err
	}
	defer unlock()
	events := s.objects.Watchers.Watch(id)
	defer events.Stop()

	for {
		v, err := s.existing(ctx, id)
		if err != nil {
			return Volume{}, err
		}
		wanted, err := target(v, size)
		if err != nil {
			return Volume{}, err
		}
		if err := s.mayGrow(v, wanted); err != nil {
			return Volume{}, err
		}
		written, err := s.want(ctx, v, wanted)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return Volume{}, fmt.Errorf("expanding volume %s: %w", id, err)
		}
		return s.grown(ctx, events, written, size)
	}
}

// target returns the capacity that the spec should have. If a request was refused and
// then made smaller, that is again the capacity of the replica.
func target(v *v1alpha1.Volume, size Size) (int64, error) {
	have := capacity(v)
	switch {
	case have == 0: // no node has answered yet
		return max(size.Required, v.Spec.Capacity.Value()), nil
	case size.Limit > 0 && have > size.Limit:
		return 0, fail(ErrOutOfRange, "volume %s has %s already, more than the limit of %s, and cannot shrink",
			v.Name, quantity.Bytes(have), quantity.Bytes(size.Limit))
	case have >= size.Required && v.Spec.Capacity.Value() > have:
		return have, nil
	case have >= size.Required:
		return v.Spec.Capacity.Value(), nil
	}
	return size.Required, nil
}

// mayGrow returns nil if the ledger has set aside the room for a larger volume. The node would
// refuse as well, but a written capacity counts as promised, and must not keep pods out while it
// waits for the node's answer. A volume that the ledger has not seen yet is left to its node.
func (s *Service) mayGrow(v *v1alpha1.Volume, bytes int64) error {
	if bytes <= v.Spec.Capacity.Value() {
		return nil
	}
	o := s.ledger.Grant(v.Name, bytes)
	switch {
	case o.Node == "":
		return nil
	case s.nodes.Away(o.Node) != "":
		return fail(provision.ErrUnavailable, "node %s: %s", o.Node, s.nodes.Away(o.Node))
	case o.Reason == ledger.NoRoom:
		return fail(ErrOutOfRange, "node %s: %s", o.Node, o.Message(quantity.Bytes))
	default:
		return fail(provision.ErrUnavailable, "node %s: %s", o.Node, o.Message(quantity.Bytes))
	}
}

// want writes the capacity into the spec unless it is there.
func (s *Service) want(ctx context.Context, v *v1alpha1.Volume, bytes int64) (*v1alpha1.Volume, error) {
	if v.Spec.Capacity.Value() == bytes {
		return v, nil
	}
	larger := v.DeepCopy()
	larger.Spec.Capacity = *resource.NewQuantity(bytes, resource.BinarySI)
	return larger, s.client.Update(ctx, larger)
}

// grown waits for the nodes' answer. A volume that is large enough already needs none.
func (s *Service) grown(ctx context.Context, events *watcher, v *v1alpha1.Volume, size Size) (Volume, error) {
	latest, answer, gone, err := s.objects.Await(ctx, events, v, func(v *v1alpha1.Volume) usecase.Answer {
		if have := capacity(v); have > 0 && have >= size.Required {
			return usecase.Answer{State: usecase.Done}
		}
		answer := expanded(v)
		if answer.State != usecase.Waiting {
			return answer
		}
		if away := s.nodes.Away(answer.Node); away != "" {
			return usecase.Answer{State: usecase.Failed, Node: answer.Node, Class: provision.ErrUnavailable, Message: away}
		}
		return answer
	})
	switch {
	case err != nil:
		return Volume{}, err
	case gone:
		return Volume{}, fail(provision.ErrNotFound, "volume %s was deleted while it was being expanded", v.Name)
	case answer.State != usecase.Done:
		return Volume{}, answer.Err()
	}
	return View(latest), nil
}
