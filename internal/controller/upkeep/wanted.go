package upkeep

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// whenDeleted lets only deletions through.
var whenDeleted = builder.WithPredicates(predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
})

// volumeOf names the Volume that Berth makes for a claim, if it makes one.
func volumeOf(_ context.Context, claim client.Object) []reconcile.Request {
	name := v1alpha1.VolumeName("pvc-" + string(claim.GetUID()))
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// claimOf returns the Volume's claim, or nil if it is gone. It believes the first
// reader that knows the claim. The last reader must be the API server, since a
// missing claim leads to a deletion.
func claimOf(ctx context.Context, v *v1alpha1.Volume, readers ...client.Reader) (*corev1.PersistentVolumeClaim, error) {
	ref := v.Spec.ClaimRef
	for _, reader := range readers {
		claim := &corev1.PersistentVolumeClaim{}
		err := reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		if err == nil && claim.UID == ref.UID {
			return claim, nil
		}
	}
	return nil, nil
}

// owns reports whether a claim is bound to the Volume: to the PersistentVolume that a
// provisioner makes for it, or to another one that stands for it.
func owns(ctx context.Context, d driver.Driver, claim *corev1.PersistentVolumeClaim, v *v1alpha1.Volume, live client.Reader) (bool, error) {
	name := claim.Spec.VolumeName
	if name == "" || name == v.Name {
		return name != "", nil
	}
	pv := &corev1.PersistentVolume{}
	if err := live.Get(ctx, types.NamespacedName{Name: name}, pv); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	return d.Handle(pv) == v.Name, nil
}

// exported reports whether there is a PersistentVolume of the Volume's name, which is
// the one that a provisioner makes.
func exported(ctx context.Context, v *v1alpha1.Volume, live client.Reader) (bool, error) {
	err := live.Get(ctx, types.NamespacedName{Name: v.Name}, &corev1.PersistentVolume{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading PersistentVolume %s: %w", v.Name, err)
	}
	return err == nil, nil
}

// discard deletes a Volume only if it has not changed since that was decided.
func discard(ctx context.Context, c client.Client, v *v1alpha1.Volume, why string) error {
	err := c.Delete(ctx, v, client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting volume %s: %s: %w", v.Name, why, err)
	}
	log.FromContext(ctx).Info("deleted a volume that is not wanted",
		"volume", v.Name, "why", why, "claim", v.Spec.ClaimRef.Namespace+"/"+v.Spec.ClaimRef.Name)
	return nil
}
