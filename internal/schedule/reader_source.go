package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
)

// source finds the source of a claim of Berth's and its places: the copy can be made
// nowhere else. It finds none if that is not for Berth to say: a source of another
// driver, or one in another namespace. The owner of that namespace has to allow the
// copy, and this process is not told about that.
func (r Reader) source(ctx context.Context, pod *corev1.Pod, c *podClaim) error {
	named := sourceOf(c.claim)
	if named == nil || !copies(named) || named.Namespace != nil && *named.Namespace != c.claim.Namespace {
		return nil
	}
	s := &Source{Claim: c.name, Kind: named.Kind, Name: named.Name}
	find := r.clonedVolume
	if s.Kind == kindSnapshot {
		find = r.restoredSnapshot
	}
	problem, err := find(ctx, pod, s)
	if err != nil || s.ignored {
		return err
	}
	c.source = s
	if problem != "" && c.problem == "" {
		c.problem = fmt.Sprintf("%s, %s", s, problem)
	}
	return nil
}

func (r Reader) restoredSnapshot(ctx context.Context, pod *corev1.Pod, s *Source) (problem string, err error) {
	of, err := r.Objects.VolumeSnapshot(ctx, pod.Namespace, s.Name)
	switch {
	case errors.Is(err, ErrNoVolumeSnapshots):
		return "which is not known: " + ErrNoVolumeSnapshots.Error(), nil
	case err != nil:
		return "", fmt.Errorf("reading snapshot %s/%s: %w", pod.Namespace, s.Name, err)
	case of == nil || !v1alpha1.IsSnapshotName(of.Handle):
		return s.restored(r.Driver, of, nil), nil
	}
	snapshot, err := r.Objects.Snapshot(ctx, of.Handle)
	if err != nil {
		return "", fmt.Errorf("reading snapshot %s: %w", of.Handle, err)
	}
	return s.restored(r.Driver, of, snapshot), nil
}

// clonedVolume ignores a source that waits for the same pod: both claims go where the
// pod goes, one after the other.
func (r Reader) clonedVolume(ctx context.Context, pod *corev1.Pod, s *Source) (problem string, err error) {
	claim, err := r.Objects.Claim(ctx, pod.Namespace, s.Name)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading claim %s/%s: %w", pod.Namespace, s.Name, err)
	case claim == nil:
		return "which does not exist", nil
	case claim.DeletionTimestamp != nil:
		return "which is being deleted", nil
	case claim.Spec.VolumeName == "":
		s.ignored = slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return ClaimName(pod, &v) == s.Name })
		return "which is not bound yet", nil
	}
	pv, err := r.Objects.PersistentVolume(ctx, claim.Spec.VolumeName)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading PersistentVolume %s: %w", claim.Spec.VolumeName, err)
	case pv == nil:
		return fmt.Sprintf("whose PersistentVolume %s does not exist", claim.Spec.VolumeName), nil
	}
	handle := r.Driver.Handle(pv)
	if s.ignored = handle == ""; s.ignored {
		return "", nil
	}
	v, err := r.Objects.Volume(ctx, handle)
	if err != nil {
		return "", fmt.Errorf("reading volume %s: %w", handle, err)
	}
	return s.cloned(v), nil
}
