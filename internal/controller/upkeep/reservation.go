package upkeep

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
)

// Reservations gives up the Volumes that a scheduler made for a pod which then was not scheduled.
//
//   - If the claim is gone, the Volume is deleted at once.
//   - If the claim waits and no node is selected for it, the Volume is taken off its node after a
//     delay. It is not deleted: the claim's volume will have its name, and under deletion it would
//     keep that name from the claim for as long as its node is away.
//   - If the claim is bound to another volume, or its class is another driver's by now, the
//     Volume is deleted after the delay.
//
// A reservation stays if its claim has a selected node: a provisioner is, or will be, at work.
// A reservation of which a node has found data loses its mark: that data may be older than the
// reservation, and is no part of it.
type Reservations struct {
	// Driver whose PersistentVolumes count.
	Driver driver.Driver
	Client client.Client
	// Live reads claims and PersistentVolumes: the answer may lead to a deletion.
	Live  client.Reader
	Clock clock.PassiveClock
	// Delay is how long a reservation must have been idle and unchanged while its
	// claim is there. It must be longer than the scheduler takes from writing the
	// Volume to selecting the claim's node.
	Delay time.Duration

	// idle holds the idle reservations, by name. After a restart each of them gets
	// the whole delay again.
	idle map[string]idle
}

type idle struct {
	version string
	since   time.Time
}

// SetupWithManager adds the reconciler. It has one worker, which idle relies on.
func (r *Reservations) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("reservation").
		For(&v1alpha1.Volume{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(volumeOf), whenDeleted).
		Complete(r)
}

// Reconcile looks whether a reservation is still wanted. Nothing tells when a
// claim loses its node, so it looks again until the reservation is none any more.
func (r *Reservations) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v := &v1alpha1.Volume{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: request.Name}, v); err != nil {
		delete(r.idle, request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if v.DeletionTimestamp != nil || !v.Reserved() || v.Spec.ClaimRef == nil {
		delete(r.idle, request.Name)
		return ctrl.Result{}, nil
	}
	if v.Found() != "" {
		return ctrl.Result{}, r.unmark(ctx, v)
	}
	claim, err := claimOf(ctx, v, r.Live)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted, err := r.wanted(ctx, v, claim)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case wanted:
		delete(r.idle, v.Name)
		return ctrl.Result{RequeueAfter: r.Delay}, nil
	case claim == nil:
		return ctrl.Result{}, r.collect(ctx, v)
	}
	if left := r.left(v); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	waits, err := r.waits(ctx, claim)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case waits:
		return ctrl.Result{RequeueAfter: r.Delay}, r.vacate(ctx, v)
	}
	return ctrl.Result{}, r.collect(ctx, v)
}

// waits says whether the driver's provisioner may yet make the claim's volume.
func (r *Reservations) waits(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if claim.Spec.VolumeName != "" {
		return false, nil
	}
	return r.provisions(ctx, claim)
}

// wanted says whether a provisioner is, or will be, at work for the reservation's claim, which
// may be nil, or whether a PersistentVolume refers to the reservation.
func (r *Reservations) wanted(ctx context.Context, v *v1alpha1.Volume, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if claim != nil {
		if claim.Annotations[schedule.SelectedNode] != "" {
			if waits, err := r.waits(ctx, claim); waits || err != nil {
				return true, err
			}
		}
		if owned, err := owns(ctx, r.Driver, claim, v, r.Live); owned || err != nil {
			return true, err
		}
	}
	return exported(ctx, v, r.Live)
}

// provisions says whether a claim without a volume gets it from the driver's provisioner. It
// does not if a class of another driver has taken the place of the claim's: the volume that is made
// for the claim has the reservation's name, and waits until that is gone. A class that is not there
// says nothing, since the provisioner may have begun before.
func (r *Reservations) provisions(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	name := schedule.StorageClassOf(claim)
	if name == "" {
		return true, nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} { // the cache alone must not lead to a deletion
		class := &storagev1.StorageClass{}
		err := reader.Get(ctx, types.NamespacedName{Name: name}, class)
		switch {
		case apierrors.IsNotFound(err), err == nil && r.Driver.Provisions(class):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("reading StorageClass %s of claim %s/%s: %w", name, claim.Namespace, claim.Name, err)
		}
	}
	return false, nil
}

// left is how much longer the reservation may be idle. Every write of the Volume counts as use.
func (r *Reservations) left(v *v1alpha1.Volume) time.Duration {
	since := r.idle[v.Name]
	if since.version != v.ResourceVersion {
		if r.idle == nil {
			r.idle = map[string]idle{}
		}
		r.idle[v.Name] = idle{v.ResourceVersion, r.Clock.Now()}
		return r.Delay
	}
	return r.Delay - r.Clock.Since(since.since)
}

// unmark turns a reservation into an ordinary volume, which may have data.
func (r *Reservations) unmark(ctx context.Context, v *v1alpha1.Volume) error {
	public := v.DeepCopy()
	delete(public.Annotations, v1alpha1.ReservedAnnotation)
	err := r.Client.Update(ctx, public)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the event of the other write brings us back
		return fmt.Errorf("taking the mark of a reservation off volume %s, of which node %s has found data: %w", v.Name, v.Found(), err)
	}
	return nil
}

// vacate takes the reservation off its node, so that other volumes may have the room.
func (r *Reservations) vacate(ctx context.Context, v *v1alpha1.Volume) error {
	if !volumes.Leaves(v) {
		return nil
	}
	off := v.DeepCopy()
	off.Spec.Replicas = nil
	err := r.Client.Update(ctx, off)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the event of the other write brings us back
		return fmt.Errorf("taking the idle reservation of volume %s off its node: %w", v.Name, err)
	}
	return nil
}

func (r *Reservations) collect(ctx context.Context, v *v1alpha1.Volume) error {
	return discard(ctx, r.Client, v, "it was reserved for a pod that did not take it")
}
