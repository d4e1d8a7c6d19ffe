package nodegone

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone"
)

// Look is a summary of the whole cluster, from the caches of the watches.
type Look struct {
	crowd gone.Crowd
	// exported maps volumes to the names of the PersistentVolumes that stand for them.
	exported map[string]string
}

// look lists the whole cluster, with the Volumes of all drivers. It is only called when a node is
// gone, or was.
func (r *Reconciler) look(ctx context.Context) (Look, error) {
	var (
		volumes v1alpha1.VolumeList
		classes v1alpha1.PoolClassList
		pvs     corev1.PersistentVolumeList
		nodes   corev1.NodeList
	)
	for what, list := range map[string]client.ObjectList{"volumes": &volumes, "PoolClasses": &classes, "PersistentVolumes": &pvs, "nodes": &nodes} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return Look{}, fmt.Errorf("listing %s: %w", what, err)
		}
	}
	present := map[string]bool{}
	for i := range nodes.Items {
		present[nodes.Items[i].Name] = true
	}
	l := Look{exported: map[string]string{}}
	exports := map[string]*corev1.PersistentVolume{}
	for i := range pvs.Items {
		if handle := r.Driver.Handle(&pvs.Items[i]); handle != "" {
			l.exported[handle], exports[handle] = pvs.Items[i].Name, &pvs.Items[i]
		}
	}
	byName := map[string]*v1alpha1.PoolClass{}
	for i := range classes.Items {
		byName[classes.Items[i].Name] = &classes.Items[i]
	}
	l.crowd = gone.CrowdOf(volumes.Items, present, r.Clock.Now(), func(v *v1alpha1.Volume) bool {
		f := gone.Facts{Volume: v, Class: byName[v.Spec.PoolClass], PersistentVolume: exports[v.Name]}
		f.Claim = r.cachedClaim(ctx, f.PersistentVolume)
		why, _ := f.Kept()
		return why == "" && v.DeletionTimestamp == nil && r.Driver.Owns(v) // others release their own claims
	})
	return l, nil
}

// cachedClaim is the claim that a PersistentVolume is bound to, as the watch shows it; nil if
// there is none.
func (r *Reconciler) cachedClaim(ctx context.Context, pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	if pv == nil || pv.Spec.ClaimRef == nil {
		return nil
	}
	ref, claim := pv.Spec.ClaimRef, &corev1.PersistentVolumeClaim{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim, client.UnsafeDisableDeepCopy)
	if err != nil || claim.UID != ref.UID {
		return nil
	}
	return claim
}

// gather reads the facts for a decision about a Volume; nil if there is no such Volume.
// It reads the Node last, since the Node may have come back.
func (r *Reconciler) gather(ctx context.Context, node, volume string, look Look) (*gone.Facts, error) {
	f := &gone.Facts{Node: node, Crowd: look.crowd, Volume: &v1alpha1.Volume{}}
	if found, err := r.read(ctx, types.NamespacedName{Name: volume}, f.Volume); !found {
		return nil, err
	}
	class := &v1alpha1.PoolClass{}
	switch err := r.Client.Get(ctx, types.NamespacedName{Name: f.Volume.Spec.PoolClass}, class); {
	case err == nil:
		f.Class = class
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading PoolClass %s: %w", f.Volume.Spec.PoolClass, err)
	}
	if err := r.gatherClaim(ctx, f, look.exported[volume]); err != nil {
		return nil, err
	}
	var err error
	if f.Present, err = r.read(ctx, types.NamespacedName{Name: node}, &corev1.Node{}); err != nil {
		return nil, err
	}
	f.Now = r.Clock.Now()
	f.Watched = r.watched(f)
	return f, nil
}

// gatherClaim reads PersistentVolume and claim, unless they cannot matter.
func (r *Reconciler) gatherClaim(ctx context.Context, f *gone.Facts, name string) error {
	policy, _ := f.Class.NodeGone()
	reason := gone.MarkOf(f.Volume).Reason
	if name == "" || policy == v1alpha1.NodeGoneKeep && reason != v1alpha1.ReasonReleasingClaim && reason != v1alpha1.ReasonClaimReleased {
		return nil
	}
	pv := &corev1.PersistentVolume{}
	found, err := r.read(ctx, types.NamespacedName{Name: name}, pv)
	if !found || r.Driver.Handle(pv) != f.Volume.Name {
		return err
	}
	f.PersistentVolume = pv
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	found, err = r.read(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if found && claim.UID == ref.UID {
		f.Claim = claim
	}
	return err
}

// read asks the API server, and says whether there is such an object.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName, o client.Object) (bool, error) {
	err := r.Live.Get(ctx, name, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", o, name.Name, err)
	}
	return true, nil
}

// watched says for how long this process has seen the absence that the Volume's mark
// counts. The time begins when this process first sees the mark.
func (r *Reconciler) watched(f *gone.Facts) gone.Watched {
	seen := r.seen[f.Node]
	if f.Present || !gone.Counting(gone.MarkOf(f.Volume)) {
		delete(seen, f.Volume.UID)
		return gone.Watched{}
	}
	s, ok := seen[f.Volume.UID]
	if !ok {
		s = sight{since: f.Now}
		seen[f.Volume.UID] = s
	}
	return gone.Watched{For: f.Now.Sub(s.since), Whole: s.whole}
}

// begin notes that this process has seen the count from its beginning.
func (r *Reconciler) begin(f *gone.Facts, now time.Time) {
	r.seen[f.Node][f.Volume.UID] = sight{since: now, whole: true}
}
