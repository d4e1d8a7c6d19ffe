package inline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// offer is a pool that serves a class on this node.
type offer struct {
	request provision.CreateRequest // as the class says
	room    int64
}

// rank returns the pools of a class, those with the most room first. The report may be out
// of date, so all are worth a try. It refuses a class that does not admit the pods of the
// namespace.
func (s *Service) rank(ctx context.Context, name, namespace string) ([]offer, error) {
	class, node, err := s.offers.Class(ctx, name)
	if err != nil {
		return nil, err
	}
	if !class.Spec.AllowsInline(namespace) {
		return nil, fmt.Errorf("%w: PoolClass %s allows no inline volumes in namespace %s: its inlineVolumes.namespaces does not list it",
			provision.ErrInvalid, name, namespace)
	}
	var offers []offer
	for _, p := range s.offers.Pools() {
		if poolclass.Serves(class, p, node) {
			offers = append(offers, offer{poolclass.Request(class, p.PoolRef), poolclass.Room(class, p)})
		}
	}
	if len(offers) == 0 {
		return nil, fmt.Errorf("%w: this node has no pool that serves PoolClass %s", provision.ErrPoolMissing, name)
	}
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.room, a.room), cmp.Compare(a.request.Pool.Name, b.request.Pool.Name))
	})
	return offers, nil
}
