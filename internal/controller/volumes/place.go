package volumes

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// place is a pool of a node.
type place struct{ node, pool string }

// offer is a node that has room.
type offer struct {
	node string
	// shut is whether new pods are kept from the node. Where there is a choice no pod has been
	// scheduled yet, and one that tolerates what the node bears is the exception.
	shut       bool
	preference int
	score      int64
}

// place picks a node and a pool for the request, and holds the room there until
// the call ends: the Volume takes its place as soon as the ledger sees it. Room
// that is held for the claim already, in the scheduler's name, is what is taken.
func (a *attempt) place(ctx context.Context) (place, error) {
	pool := a.request.Pool
	if a.origin != nil {
		pool = a.origin.at.pool
	}
	for {
		r, verdict := a.ledger.Request(a.options(), a.demand(pool))
		if !verdict.Fits() {
			return place{}, a.unusable(ctx, verdict)
		}
		nodes := a.candidates()
		if len(nodes) == 0 && a.origin != nil {
			return place{}, a.origin.elsewhere()
		}
		offers := a.offers(r, nodes)
		if len(offers) == 0 {
			return place{}, a.unplaceable(ctx, r, nodes)
		}
		at, ok := a.take(slices.MinFunc(offers, better).node, r)
		if ok {
			return at, nil
		}
		// Somebody else was faster. The ledger knows it, so this ends.
		if ctx.Err() != nil {
			return place{}, fmt.Errorf("placing volume %s: %w", a.name, context.Cause(ctx))
		}
	}
}

// owner is whom the room belongs to until there is a Volume.
func (a *attempt) owner() ledger.Owner {
	if uid := claimUID(a.request.Name); uid != "" {
		return ledger.Claim(string(uid))
	}
	return ledger.Volume(a.name)
}

// options name this call as a pod in flight: what others hold for the claim then
// binds it, and what it holds itself is given back in its name.
func (a *attempt) options() ledger.RequestOptions {
	return ledger.RequestOptions{Pod: "creating " + a.name}
}

func (a *attempt) demand(pool string) ledger.Demand {
	return ledger.Demand{Owner: a.owner(), Class: a.request.PoolClass, Bytes: a.bytes, Pool: pool, Feature: a.request.Feature()}
}

// candidates are the nodes that may be asked, in order.
func (a *attempt) candidates() []string {
	nodes := a.request.Topology.Allowed
	if o := a.origin; o != nil {
		if len(nodes) > 0 && !slices.Contains(nodes, o.at.node) {
			return nil
		}
		return []string{o.at.node}
	}
	if len(nodes) == 0 {
		return a.ledger.NodeNames()
	}
	nodes = slices.Clone(nodes)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// offers are those of the nodes that can take the volume.
func (a *attempt) offers(r *ledger.Request, nodes []string) []offer {
	var list []offer
	for _, name := range nodes {
		if _, refused := a.refused[name]; refused || a.nodes.Away(name) != "" {
			continue
		}
		node := a.ledger.Node(name)
		choices, verdict := node.Place(r, nil)
		if !verdict.Fits() || a.unaligned(node, choices[0].Pool) != "" {
			continue
		}
		list = append(list, offer{name, a.nodes.Shut(name), a.preference(name), node.Score(r)})
	}
	return list
}

// better orders offers: nodes that are open to pods, then preference, then score, then name, so
// that the same facts always give the same answer.
func better(a, b offer) int {
	return cmp.Or(rank(a.shut)-rank(b.shut), cmp.Compare(a.preference, b.preference), cmp.Compare(b.score, a.score), cmp.Compare(a.node, b.node))
}

func rank(shut bool) int {
	if shut {
		return 1
	}
	return 0
}

// preference is the node's position in the caller's list; those that are not on
// it come last.
func (a *attempt) preference(node string) int {
	if i := slices.Index(a.request.Topology.Preferred, node); i >= 0 {
		return i
	}
	return len(a.request.Topology.Preferred)
}

// take holds room on a node, in the pool where it is held already if there is
// one. A volume without a claim cannot be held for: its Volume is the first that
// the ledger hears of it.
func (a *attempt) take(node string, r *ledger.Request) (place, bool) {
	if a.owner().Kind == ledger.ByVolume {
		choices, verdict := a.ledger.Node(node).Place(r, nil)
		if !verdict.Fits() {
			return place{}, false
		}
		return place{node, choices[0].Pool}, true
	}
	if pool, held := a.ledger.Held(a.owner(), node); held && a.request.Pool == "" && a.origin == nil {
		there, _ := a.ledger.Request(a.options(), a.demand(pool))
		if at, ok := a.reserve(node, there); ok {
			return at, true
		}
	}
	return a.reserve(node, r)
}

func (a *attempt) reserve(node string, r *ledger.Request) (place, bool) {
	choices, verdict := a.ledger.Reserve(node, r)
	if !verdict.Fits() {
		return place{}, false
	}
	a.reserved = append(a.reserved, node)
	return place{node, choices[0].Pool}, true
}

// release gives back what the call held.
func (a *attempt) release() {
	for _, node := range a.reserved {
		a.ledger.Unreserve(a.options().Pod, node)
	}
}
