package volumes

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
)

// Capacity is the room for new volumes, in bytes.
type Capacity struct {
	// Total of all pools.
	Total int64
	// Largest volume that one pool could take.
	Largest int64
}

// Capacity returns the room that a class has on the given nodes. An empty class means
// the one with most room, empty nodes mean all. The next Create would find the same
// room: a node that is away has none.
func (s *Service) Capacity(ctx context.Context, class string, allowed []string) (Capacity, error) {
	classes, err := s.classes(ctx, class)
	if err != nil {
		return Capacity{}, err
	}
	nodes := allowed
	if len(nodes) == 0 {
		nodes = s.ledger.NodeNames()
	}
	var room Capacity
	for _, node := range nodes {
		if s.nodes.Away(node) != "" {
			continue
		}
		var best ledger.Room
		for _, class := range classes {
			r := s.ledger.Room(node, class)
			best.Largest, best.Sum = max(best.Largest, r.Largest), max(best.Sum, r.Sum)
		}
		room.Total += best.Sum
		room.Largest = max(room.Largest, best.Largest)
	}
	return room, nil
}

// classes returns the named class, which must exist, or all classes.
func (s *Service) classes(ctx context.Context, name string) ([]string, error) {
	if name != "" {
		return []string{name}, s.mustExist(ctx, name)
	}
	var list v1alpha1.PoolClassList
	if err := s.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pool classes: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
