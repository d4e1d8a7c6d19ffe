package nodegone

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone"
)

// take carries out a step. If an object has changed since the decision that is no
// error: the next look sees the change.
func (r *Reconciler) take(ctx context.Context, f *gone.Facts, a gone.Answer) error {
	var err error
	switch a.Verb {
	case gone.Mark:
		err = r.mark(ctx, f, a)
	case gone.Retain:
		err = r.retain(ctx, f)
	case gone.Delete:
		err = r.delete(ctx, f)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("step taken", "volume", f.Volume.Name, "node", f.Node, "claim", f.ClaimName(),
		"step", a.Verb, "reason", a.Reason, "message", a.Message)
	return nil
}

// mark writes the condition after it has published the events. If the process crashes in between,
// it publishes them again and people still see one event. In the other order they could see none.
func (r *Reconciler) mark(ctx context.Context, f *gone.Facts, a gone.Answer) error {
	next := metav1.Condition{
		Type: v1alpha1.ConditionNodeGone, Status: a.Status, Reason: a.Reason, Message: a.Message,
		ObservedGeneration: f.Volume.Generation, LastTransitionTime: metav1.NewTime(f.Now.Truncate(time.Second)),
	}
	began := gone.Counting(next) && !gone.Counting(gone.MarkOf(f.Volume))
	if a.Tell {
		if err := r.tell(ctx, f, a); err != nil {
			return err
		}
	}
	if began { // this also restarts the time of a mark that was True before
		meta.RemoveStatusCondition(&f.Volume.Status.Conditions, v1alpha1.ConditionNodeGone)
	}
	meta.SetStatusCondition(&f.Volume.Status.Conditions, next)
	if err := r.Client.Status().Update(ctx, f.Volume); err != nil {
		return err
	}
	if began {
		r.begin(f, f.Now)
	}
	return nil
}

// retain makes sure that the PersistentVolume, and with it the data, stays when its claim goes.
func (r *Reconciler) retain(ctx context.Context, f *gone.Facts) error {
	pv := f.PersistentVolume
	before := client.MergeFromWithOptions(pv.DeepCopy(), client.MergeFromWithOptimisticLock{})
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return r.Client.Patch(ctx, pv, before)
}

// delete deletes the claim only if it has not changed since the decision.
func (r *Reconciler) delete(ctx context.Context, f *gone.Facts) error {
	return r.Client.Delete(ctx, f.Claim, client.Preconditions{UID: &f.Claim.UID, ResourceVersion: &f.Claim.ResourceVersion})
}
