package quarantine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// vacant refuses a claim that has another PersistentVolume than the given one, or than the
// one that is to be made: it would never take this one.
func (a Adoption) vacant(ctx context.Context, c client.Reader, pv *corev1.PersistentVolume) error {
	if a.Claim == nil {
		return nil
	}
	name := a.Name
	if pv != nil {
		name = pv.Name
	}
	claim, err := claimNamed(ctx, c, a.Claim)
	if err != nil || claim == nil || claim.Spec.VolumeName == "" || claim.Spec.VolumeName == name {
		return err
	}
	return refuse("claim %s/%s has PersistentVolume %s: name another claim, or stop its pods and delete it first",
		claim.Namespace, claim.Name, claim.Spec.VolumeName)
}

// unused refuses a volume whose PersistentVolume cannot be made, because one of another volume
// has its name.
func (a Adoption) unused(ctx context.Context, c client.Reader, pv *corev1.PersistentVolume) error {
	if pv != nil {
		return nil
	}
	err := c.Get(ctx, client.ObjectKey{Name: a.Name}, &corev1.PersistentVolume{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for a PersistentVolume of the name %s: %w", a.Name, err)
	}
	return refuse("PersistentVolume %s exists, and is of another volume: delete it, or make it anew under another name, first", a.Name)
}

// rebinds says whether an existing PersistentVolume, nil for none, is to be kept for the
// claim that was asked for: it is if it is kept for no claim now, or for one that is gone.
func (a Adoption) rebinds(ctx context.Context, c client.Reader, pv *corev1.PersistentVolume) (bool, error) {
	switch {
	case a.Claim == nil || pv == nil:
		return false, nil
	case pv.DeletionTimestamp != nil:
		return false, refuse("PersistentVolume %s is being deleted", pv.Name)
	case pv.Spec.ClaimRef == nil:
		return true, nil
	}
	was := pv.Spec.ClaimRef
	claim, err := claimNamed(ctx, c, was)
	same := was.Namespace == a.Claim.Namespace && was.Name == a.Claim.Name
	held := claim != nil && (was.UID == "" || claim.UID == was.UID)
	switch {
	case err != nil:
		return false, err
	case same && (held || was.UID == ""):
		return false, nil
	case held:
		return false, refuse("PersistentVolume %s is kept for claim %s/%s, which exists", pv.Name, was.Namespace, was.Name)
	case pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return false, refuse("PersistentVolume %s is deleted with its claim, which is gone: set its persistentVolumeReclaimPolicy to Retain first", pv.Name)
	}
	return true, nil
}

// rebind keeps a PersistentVolume for the claim. It is a compare-and-swap with the version
// that was read.
func (a Adoption) rebind(ctx context.Context, c client.Client, pv *corev1.PersistentVolume) error {
	pv.Spec.ClaimRef = a.Claim
	if err := c.Update(ctx, pv); err != nil {
		return fmt.Errorf("keeping PersistentVolume %s for claim %s/%s: %w", pv.Name, a.Claim.Namespace, a.Claim.Name, err)
	}
	return nil
}

// claimNamed is the claim of that name, whatever its uid; nil if there is none.
func claimNamed(ctx context.Context, c client.Reader, ref *corev1.ObjectReference) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := c.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return claim, nil
}
