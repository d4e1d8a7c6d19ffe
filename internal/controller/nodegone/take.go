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
)

// take carries out a step. What has changed since it was decided is no error: the next
// look sees it.
func (r *Reconciler) take(ctx context.Context, f *Facts, v Verdict) error {
	var err error
	switch v.Step {
	case StepMark:
		err = r.mark(ctx, f, v)
	case StepRetain:
		err = r.retain(ctx, f)
	case StepDelete:
		err = r.delete(ctx, f)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("step taken", "volume", f.Volume.Name, "node", f.Node, "claim", f.claimName(),
		"step", v.Step, "reason", v.Reason, "message", v.Message)
	return nil
}

// mark writes the condition, once people were told: of what is told twice after a crash
// they see one event, of what is not told they see none.
func (r *Reconciler) mark(ctx context.Context, f *Facts, v Verdict) error {
	next := metav1.Condition{
		Type: Condition, Status: v.Status, Reason: v.Reason, Message: v.Message,
		ObservedGeneration: f.Volume.Generation, LastTransitionTime: metav1.NewTime(f.Now.Truncate(time.Second)),
	}
	began := counting(next) && !counting(mark(f.Volume))
	if v.Tell {
		if err := r.tell(ctx, f, v); err != nil {
			return err
		}
	}
	if began { // also of a mark that was True before
		meta.RemoveStatusCondition(&f.Volume.Status.Conditions, Condition)
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

// retain keeps the PersistentVolume, and by it the data, when its claim goes.
func (r *Reconciler) retain(ctx context.Context, f *Facts) error {
	pv := f.PersistentVolume
	before := client.MergeFromWithOptions(pv.DeepCopy(), client.MergeFromWithOptimisticLock{})
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return r.Client.Patch(ctx, pv, before)
}

// delete deletes the claim as it was when that was decided, and no other.
func (r *Reconciler) delete(ctx context.Context, f *Facts) error {
	return r.Client.Delete(ctx, f.Claim, client.Preconditions{UID: &f.Claim.UID, ResourceVersion: &f.Claim.ResourceVersion})
}
