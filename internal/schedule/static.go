package schedule

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kubevolume "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Statics looks up the existing PersistentVolumes that claims could match.
type Statics interface {
	// Available returns the PersistentVolumes of a StorageClass that no claim has.
	Available(ctx context.Context, class string) ([]corev1.PersistentVolume, error)
	// Node is a Node with its labels, or nil.
	Node(ctx context.Context, name string) (*corev1.Node, error)
}

// AvailableIndex holds the PersistentVolumes that a claim could match, by StorageClass: see
// AvailableIn. They are few in any cluster; those that belong to a claim, which are many, are
// not in it.
const AvailableIndex = "berth.dev/available-by-class"

// AvailableIn returns the class of a PersistentVolume that no claim has yet. A
// PersistentVolume that names its claim without a UID counts: the claim has yet to be matched.
func AvailableIn(pv *corev1.PersistentVolume) (class string, available bool) {
	if pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != "" {
		return "", false
	}
	return kubevolume.GetPersistentVolumeClass(pv), true
}

// Static holds the existing PersistentVolumes that may serve claims of a pod. The
// zero value has none.
type Static struct {
	from      Statics
	available map[string][]*corev1.PersistentVolume
}

// FindStatic finds the PersistentVolumes that may serve the wanted volumes.
func FindStatic(ctx context.Context, from Statics, wanted []Wanted) (Static, error) {
	s := Static{from: from}
	for i := range wanted {
		if wanted[i].Claim == nil {
			continue
		}
		class := StorageClassOf(wanted[i].Claim)
		if _, known := s.available[class]; known {
			continue
		}
		list, err := from.Available(ctx, class)
		if err != nil {
			return s, fmt.Errorf("looking for static volumes of StorageClass %s: %w", class, err)
		}
		if len(list) == 0 {
			continue
		}
		if s.available == nil {
			s.available = map[string][]*corev1.PersistentVolume{}
		}
		for k := range list {
			s.available[class] = append(s.available[class], &list[k])
		}
	}
	return s, nil
}

// Any says whether a PersistentVolume exists that may serve one of the claims.
func (s Static) Any() bool { return len(s.available) > 0 }

// Unmatched returns the volumes that need room on a node: no existing PersistentVolume
// there serves their claims.
func (s Static) Unmatched(ctx context.Context, wanted []Wanted, node string) ([]Wanted, error) {
	if !s.Any() {
		return wanted, nil
	}
	n, err := s.from.Node(ctx, node)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", node, err)
	case n == nil:
		return wanted, nil
	}
	return unmatched(wanted, s.available, n)
}

// unmatched goes through the claims as VolumeBinding does, by size,
// and keeps those without a PersistentVolume that the node can reach.
// A claim that has its node already is to be provisioned there.
func unmatched(wanted []Wanted, available map[string][]*corev1.PersistentVolume, node *corev1.Node) ([]Wanted, error) {
	bySize := slices.DeleteFunc(slices.Clone(wanted), func(w Wanted) bool { return w.Claim == nil || w.Claim.Annotations[SelectedNode] != "" })
	slices.SortStableFunc(bySize, func(a, b Wanted) int {
		sizeA, sizeB := a.Claim.Spec.Resources.Requests[corev1.ResourceStorage], b.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
		return sizeA.Cmp(sizeB)
	})
	chosen, served := map[string]*corev1.PersistentVolume{}, map[*corev1.PersistentVolumeClaim]bool{}
	for _, w := range bySize {
		pv, err := kubevolume.FindMatchingVolume(w.Claim, available[StorageClassOf(w.Claim)], node, chosen, true, true)
		if err != nil {
			return nil, fmt.Errorf("matching claim %s: %w", w.Claim.Name, err)
		}
		if pv != nil {
			chosen[pv.Name], served[w.Claim] = pv, true
		}
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(w Wanted) bool { return w.Claim != nil && served[w.Claim] }), nil
}

// Available returns the PersistentVolumes of a StorageClass
// that no claim has. The cache must have AvailableIndex.
func (c Cached) Available(ctx context.Context, class string) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	err := c.List(ctx, &list, client.MatchingFields{AvailableIndex: class}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// Node returns a Node, or nil.
func (c Cached) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return get(ctx, c.Reader, client.ObjectKey{Name: name}, &corev1.Node{})
}

// Available returns the PersistentVolumes of a StorageClass that no claim has.
func (l *Lists) Available(_ context.Context, class string) ([]corev1.PersistentVolume, error) {
	var list []corev1.PersistentVolume
	for i := range l.PersistentVolumes {
		if of, available := AvailableIn(&l.PersistentVolumes[i]); available && of == class {
			list = append(list, l.PersistentVolumes[i])
		}
	}
	return list, nil
}

// Node returns a Node, or nil.
func (l *Lists) Node(_ context.Context, name string) (*corev1.Node, error) {
	return first(l.Nodes, func(n *corev1.Node) bool { return n.Name == name }), nil
}
