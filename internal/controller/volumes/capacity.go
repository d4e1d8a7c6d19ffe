package volumes

import (
	"context"
	"slices"
)

// Capacity is the room for new volumes, in bytes.
type Capacity struct {
	// Total of all pools.
	Total int64
	// Largest volume that one pool could take.
	Largest int64
}

// Capacity returns the room that a class has on the given nodes. An empty class
// means any, empty nodes mean all. It is what the next Create would find: a node
// that is away has none.
func (s *Service) Capacity(ctx context.Context, class string, allowed []string) (Capacity, error) {
	var keep int64
	if class != "" {
		c, err := s.poolClass(ctx, class)
		if err != nil {
			return Capacity{}, err
		}
		keep = spare(c)
	}
	nodes, usage, err := s.facts(ctx, "")
	if err != nil {
		return Capacity{}, err
	}
	var room Capacity
	for i := range nodes {
		node := &nodes[i]
		if node.Away != "" || len(allowed) > 0 && !slices.Contains(allowed, node.Name) {
			continue
		}
		for _, largest := range usage.Room(node, class, keep) {
			room.Total += largest
			room.Largest = max(room.Largest, largest)
		}
	}
	return room, nil
}
