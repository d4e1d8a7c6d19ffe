package inline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"berth.dev/berth/internal/agent/poolclass"
	"berth.dev/berth/internal/provision"
)

// offer is a pool that serves a class on this node.
type offer struct {
	pool   provision.PoolRef
	limits provision.Limits
	wipe   provision.Wipe
	zfs    provision.ZFSOptions
	room   int64
}

// rank returns the pools of a class, with the most room first. The one that has
// room in the report may have lost it by now, so all are worth a try. A class that
// does not admit the pods of the namespace is refused.
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
			offers = append(offers, offer{p.PoolRef, poolclass.Limits(class), poolclass.Wipe(class), poolclass.ZFS(class), poolclass.Room(class, p)})
		}
	}
	if len(offers) == 0 {
		return nil, fmt.Errorf("%w: this node has no pool that serves PoolClass %s", provision.ErrPoolMissing, name)
	}
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.room, a.room), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	return offers, nil
}
