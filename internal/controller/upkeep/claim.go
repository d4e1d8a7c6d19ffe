package upkeep

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase/volumes"
)

// HandleIndex finds a driver's PersistentVolumes by the volume that they refer to.
const HandleIndex = "berth.dev/handle"

// Handles returns the key of a PersistentVolume in HandleIndex; none for another driver's.
func Handles(d driver.Driver) client.IndexerFunc {
	return func(obj client.Object) []string {
		if pv, ok := obj.(*corev1.PersistentVolume); ok && d.Handle(pv) != "" {
			return []string{d.Handle(pv)}
		}
		return nil
	}
}

// Claims finds the Volumes whose claim was deleted before it got them.
type Claims struct {
	// Driver whose PersistentVolumes count.
	Driver driver.Driver
	Client client.Client
	// Live reads claims that the cache lacks: the answer may lead to a deletion.
	Live  client.Reader
	Clock clock.PassiveClock
	// Delay is how long a Volume is left alone after its creation, and between looks.
	// A Volume without a node gets no delay: a call that still works at it makes a
	// new Volume, which is left alone.
	Delay time.Duration
}

// SetupWithManager adds the reconciler.
func (r *Claims) SetupWithManager(m ctrl.Manager) error {
	byHandle := func(_ context.Context, pv client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, handle := range Handles(r.Driver)(pv) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: handle}})
		}
		return requests
	}
	return ctrl.NewControllerManagedBy(m).Named("claim").
		For(&v1alpha1.Volume{}).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(byHandle)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(volumeOf), whenDeleted).
		Complete(r)
}

// Reconcile checks whether a volume is still wanted.
func (r *Claims) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v := &v1alpha1.Volume{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: request.Name}, v); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if v.DeletionTimestamp != nil || v.Reserved() || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == "" {
		return ctrl.Result{}, nil
	}
	if age := r.Clock.Since(v.CreationTimestamp.Time); age < r.Delay && len(v.Spec.Replicas) > 0 {
		return ctrl.Result{RequeueAfter: r.Delay - age}, nil
	}
	referred, err := r.referred(ctx, v)
	if err != nil {
		return ctrl.Result{}, err
	}
	if referred {
		return ctrl.Result{}, r.settle(ctx, v, false)
	}
	wanted, err := r.wanted(ctx, v)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case wanted:
		return ctrl.Result{RequeueAfter: r.Delay}, r.settle(ctx, v, false)
	case volumes.Carved(v):
		return ctrl.Result{RequeueAfter: r.Delay}, r.settle(ctx, v, true)
	}
	return ctrl.Result{}, discard(ctx, r.Client, v, "its claim is gone and it was never carved")
}

// referred reports whether a PersistentVolume of any name refers to the volume.
func (r *Claims) referred(ctx context.Context, v *v1alpha1.Volume) (bool, error) {
	var list corev1.PersistentVolumeList
	err := r.Client.List(ctx, &list, client.MatchingFields{HandleIndex: v.Name}, client.Limit(1), client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("looking up the PersistentVolume of volume %s: %w", v.Name, err)
	}
	return len(list.Items) > 0, nil
}

// wanted reports whether the claim exists and is not bound to another volume, or
// there is a PersistentVolume of the volume's name.
func (r *Claims) wanted(ctx context.Context, v *v1alpha1.Volume) (bool, error) {
	claim, err := claimOf(ctx, v, r.Client, r.Live)
	if err != nil {
		return false, err
	}
	if claim != nil {
		if owned, err := owns(ctx, r.Driver, claim, v, r.Live); claim.Spec.VolumeName == "" || owned || err != nil {
			return true, err
		}
	}
	return exported(ctx, v, r.Live)
}

// settle updates the condition Orphaned of a volume. A volume that never was an
// orphan does not get that condition.
func (r *Claims) settle(ctx context.Context, v *v1alpha1.Volume, orphaned bool) error {
	if !orphaned && meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionOrphaned) == nil {
		return nil
	}
	c := metav1.Condition{Type: v1alpha1.ConditionOrphaned, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonReferred, ObservedGeneration: v.Generation}
	if orphaned {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonClaimGone
		c.Message = fmt.Sprintf("claim %s/%s is gone and no PersistentVolume refers to the volume: its data is kept; "+
			"make a PersistentVolume with volumeHandle %s to use it, or delete the Volume to remove it",
			v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name, v.Name)
	}
	if !meta.SetStatusCondition(&v.Status.Conditions, c) {
		return nil
	}
	err := r.Client.Status().Update(ctx, v)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the event of the other write brings us back
	}
	if err != nil {
		return fmt.Errorf("marking volume %s as orphaned: %w", v.Name, err)
	}
	return nil
}
