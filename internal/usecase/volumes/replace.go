package volumes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// wellPlaced says whether the volume is on nodes that the request allows and that
// have not refused it.
func (a *attempt) wellPlaced(v *v1alpha1.Volume) bool {
	if len(v.Spec.Replicas) == 0 {
		return false
	}
	for _, replica := range v.Spec.Replicas {
		if _, refused := a.refused[replica.Node]; refused {
			return false
		}
		if allowed := a.request.Topology.Allowed; len(allowed) > 0 && !slices.Contains(allowed, replica.Node) {
			return false
		}
	}
	return true
}

// replace moves a volume that has never answered to another node by one
// compare-and-swap. With no other node it takes the volume off the one that refused,
// so that nothing is carved there in vain, and returns the refusal.
func (a *attempt) replace(ctx context.Context, v *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	v, err := a.heard(ctx, v)
	if err != nil {
		return nil, err
	}
	if err := a.mayMove(ctx, v); err != nil {
		return nil, err
	}
	if err := a.resolve(ctx); err != nil {
		return a.takeOff(ctx, v, err)
	}
	at, unplaceable := a.rooms.place(ctx)
	if unplaceable != nil {
		return a.takeOff(ctx, v, unplaceable)
	}
	if err := a.mayFormat(ctx, at); err != nil {
		return a.takeOff(ctx, v, err)
	}
	v, err = a.leave(ctx, v, at.node)
	if err != nil {
		return nil, err
	}
	moved := v.DeepCopy()
	putOn(moved, at)
	return a.update(ctx, moved)
}

// takeOff leaves the volume without a node and returns why.
func (a *attempt) takeOff(ctx context.Context, v *v1alpha1.Volume, why error) (*v1alpha1.Volume, error) {
	if len(v.Spec.Replicas) == 0 {
		return nil, why
	}
	off := v.DeepCopy()
	off.Spec.Replicas = nil
	latest, err := a.update(ctx, off)
	if err != nil {
		return nil, err
	}
	if len(latest.Spec.Replicas) > 0 {
		return latest, nil
	}
	return nil, why
}

// leave waits until a node has no entry of the volume. This matters if the volume goes back to
// a node that it was taken off: the old report would pass for an answer to the new request.
func (a *attempt) leave(ctx context.Context, v *v1alpha1.Volume, node string) (*v1alpha1.Volume, error) {
	latest, _, gone, err := a.objects.Await(ctx, a.events, v, func(v *v1alpha1.Volume) usecase.Answer {
		if v.Entry(node) != nil {
			return usecase.Answer{State: usecase.Waiting, Node: node}
		}
		return usecase.Answer{State: usecase.Done}
	})
	if gone {
		return nil, a.gone()
	}
	return latest, err
}

// update is the compare-and-swap. If another write came first, it returns the object
// after that write, and the caller starts over from there. A node that had refused
// may have carved the volume after all, so it is judged afresh.
func (a *attempt) update(ctx context.Context, v *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	err := a.client.Update(ctx, v)
	if apierrors.IsConflict(err) {
		latest, err := a.reread(ctx)
		if latest != nil {
			for _, replica := range latest.Spec.Replicas {
				delete(a.refused, replica.Node)
			}
		}
		return latest, err
	}
	if err != nil {
		return nil, fmt.Errorf("placing volume %s: %w", a.name, err)
	}
	return v, nil
}

// heard waits until the nodes that the volume is to be taken off have answered. A node
// would keep data that it has carved and not reported: it removes data only if its own
// entry shows that it knows of the volume. heard does not wait for a node that is away.
func (a *attempt) heard(ctx context.Context, v *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	latest, _, gone, err := a.objects.Await(ctx, a.events, v, a.judge)
	if gone {
		return nil, a.gone()
	}
	return latest, err
}

// mayMove refuses to move a volume that Create has returned. The sign of that is the
// PersistentVolume, which the provisioner names after the volume. It also refuses if
// a node has data of the volume's name that this object did not make: the claim would
// get an empty volume elsewhere.
func (a *attempt) mayMove(ctx context.Context, v *v1alpha1.Volume) error {
	if at := v.Found(); at != "" {
		return fail(provision.ErrConflict, "volume %s cannot be elsewhere: %s", a.name, kept(at, message(v.Entry(at)), a.request.Claim, a.name))
	}
	if v.Spec.Adopted {
		return fail(provision.ErrConflict, "volume %s was adopted and cannot be elsewhere than its data", a.name)
	}
	if !Carved(v) {
		return nil
	}
	pv := &corev1.PersistentVolume{}
	err := a.live.Get(ctx, types.NamespacedName{Name: a.request.Name}, pv)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading PersistentVolume %s: %w", a.request.Name, err)
	}
	return fail(provision.ErrConflict, "volume %s exists elsewhere already, and PersistentVolume %s refers to it", a.name, pv.Name)
}
