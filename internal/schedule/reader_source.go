package schedule

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// sourceOf is what the claim's data comes from, or nil for a claim that begins
// blank. Of the two fields the newer one counts; the API server keeps them alike.
func sourceOf(c *corev1.PersistentVolumeClaim) *corev1.TypedObjectReference {
	if c.Spec.DataSourceRef != nil {
		return c.Spec.DataSourceRef
	}
	if s := c.Spec.DataSource; s != nil {
		return &corev1.TypedObjectReference{APIGroup: s.APIGroup, Kind: s.Kind, Name: s.Name}
	}
	return nil
}

// The kinds of sources that a provisioner knows.
const (
	kindClaim    = "PersistentVolumeClaim"
	kindSnapshot = "VolumeSnapshot"
)

// clonedVolume is the Volume beside which the claim's has to be, or empty if that
// is not known: the claim is no clone, or the claim that it is a clone of is not bound.
// Where a snapshot is, only CreateVolume knows, which refuses other nodes.
func (r Reader) clonedVolume(ctx context.Context, c *corev1.PersistentVolumeClaim) (string, error) {
	source := sourceOf(c)
	if source == nil || source.Kind != kindClaim || source.Namespace != nil && *source.Namespace != c.Namespace {
		return "", nil
	}
	claim, err := r.Objects.Claim(ctx, c.Namespace, source.Name)
	if err != nil {
		return "", fmt.Errorf("reading claim %s/%s: %w", c.Namespace, source.Name, err)
	}
	if claim == nil || claim.Spec.VolumeName == "" {
		return "", nil
	}
	pv, err := r.Objects.PersistentVolume(ctx, claim.Spec.VolumeName)
	if pv == nil || err != nil {
		return "", err
	}
	return handleOf(pv), nil
}
