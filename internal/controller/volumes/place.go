package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/placement"
	"berth.dev/berth/internal/provision"
)

// place picks a node and a pool for the request.
func (a *attempt) place(ctx context.Context) (placement.Decision, error) {
	class, err := a.poolClass(ctx, a.request.PoolClass)
	if err != nil {
		return placement.Decision{}, err
	}
	nodes, usage, err := a.facts(ctx, a.name)
	if err != nil {
		return placement.Decision{}, err
	}
	decision := placement.Decide(placement.Request{
		PoolClass: class.Name,
		Capacity:  a.bytes,
		Limit:     a.request.Size.Limit,
		Spare:     spare(class),
		Allowed:   a.request.Topology.Allowed,
		Preferred: a.request.Topology.Preferred,
		Refused:   a.refused,
	}, nodes, usage)
	switch decision.Reason {
	case placement.Placed:
		return decision, nil
	case placement.Unaligned:
		return decision, fail(ErrOutOfRange, "%s", decision.Message)
	default:
		return decision, fail(ErrUnplaceable, "%s", decision.Message)
	}
}

// poolClass reads a class. A class that the cache lacks may have been created a
// moment ago, so the API server is asked before the request is refused.
func (s *Service) poolClass(ctx context.Context, name string) (*v1alpha1.PoolClass, error) {
	class, key := &v1alpha1.PoolClass{}, types.NamespacedName{Name: name}
	err := s.client.Get(ctx, key, class)
	if apierrors.IsNotFound(err) {
		err = s.live.Get(ctx, key, class)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, fail(provision.ErrInvalid, "PoolClass %q does not exist: create it, or correct the StorageClass", name)
	case err != nil:
		return nil, fmt.Errorf("reading PoolClass %s: %w", name, err)
	}
	return class, nil
}

func spare(class *v1alpha1.PoolClass) int64 {
	if class.Spec.Spare == nil {
		return 0
	}
	return class.Spec.Spare.Value()
}

// facts gathers what placement decides on, from the cache. The lists share the
// cache's objects and are only read.
func (s *Service) facts(ctx context.Context, except string) ([]placement.Node, placement.Usage, error) {
	var reports v1alpha1.StorageNodeList
	if err := s.client.List(ctx, &reports, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing storage nodes: %w", err)
	}
	var volumes v1alpha1.VolumeList
	if err := s.client.List(ctx, &volumes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing volumes: %w", err)
	}
	nodes := make([]placement.Node, 0, len(reports.Items))
	for i := range reports.Items {
		report := &reports.Items[i]
		nodes = append(nodes, placement.Node{Name: report.Name, Away: s.away(report), Pools: report.Status.Pools})
	}
	return nodes, placement.UsageOf(volumes.Items, except), nil
}

// away says why a node should get nothing new.
func (s *Service) away(report *v1alpha1.StorageNode) string {
	if away := s.nodes.Away(report.Name); away != "" {
		return away
	}
	ready := meta.FindStatusCondition(report.Status.Conditions, "Ready")
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	if ready.Message == "" {
		return "is not ready"
	}
	return "is not ready: " + ready.Message
}
