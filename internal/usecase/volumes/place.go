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
	// shut says whether new pods are kept from the node. If there is a choice of nodes, no pod
	// has been scheduled yet, and few pods tolerate the taints of such a node.
	shut       bool
	preference int
	score      int64
}

// placing chooses the place of a call's volume, and holds the room there.
type placing struct {
	*call
	// reserved nodes are those on which the call holds room.
	reserved []string
}

// place picks a node and a pool for the request. It holds the room there until the
// call ends; the Volume takes its place as soon as the ledger sees it. If room is
// already held for the claim, in the scheduler's name, place uses that room.
func (p *placing) place(ctx context.Context) (place, error) {
	pool := p.request.Pool
	if p.origin != nil {
		pool = p.origin.at.pool
	}
	for {
		r, verdict := p.ledger.Request(p.options(), p.demand(pool))
		if !verdict.Fits() {
			return place{}, p.unusable(ctx, verdict)
		}
		nodes := p.candidates()
		if len(nodes) == 0 && p.origin != nil {
			return place{}, p.origin.elsewhere()
		}
		offers := p.offers(r, nodes)
		if len(offers) == 0 {
			return place{}, p.unplaceable(ctx, r, nodes)
		}
		at, ok := p.take(slices.MinFunc(offers, better).node, r)
		if ok {
			return at, nil
		}
		// Another call was faster. The ledger knows its room, so this loop ends.
		if ctx.Err() != nil {
			return place{}, fmt.Errorf("placing volume %s: %w", p.name, context.Cause(ctx))
		}
	}
}

// owner names the owner of the room until there is a Volume.
func (p *placing) owner() ledger.Owner {
	if uid := claimUID(p.request.Name); uid != "" {
		return ledger.Claim(string(uid))
	}
	return ledger.Volume(p.name)
}

// options name this call as a pod in flight. Room that others hold for the claim then
// binds the call, and the call gives back its own room by that name.
func (p *placing) options() ledger.RequestOptions {
	return ledger.RequestOptions{Pod: "creating " + p.name}
}

func (p *placing) demand(pool string) ledger.Demand {
	return ledger.Demand{Owner: p.owner(), Class: p.request.PoolClass, Bytes: p.bytes, Pool: pool, Feature: p.request.Feature()}
}

// candidates returns the nodes that may be asked, in order.
func (p *placing) candidates() []string {
	nodes := p.request.Topology.Allowed
	if o := p.origin; o != nil {
		if len(nodes) > 0 && !slices.Contains(nodes, o.at.node) {
			return nil
		}
		return []string{o.at.node}
	}
	if len(nodes) == 0 {
		return p.ledger.NodeNames()
	}
	nodes = slices.Clone(nodes)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// offers returns the offers of those nodes that can take the volume.
func (p *placing) offers(r *ledger.Request, nodes []string) []offer {
	var list []offer
	for _, name := range nodes {
		if _, refused := p.refused[name]; refused || p.nodes.Away(name) != "" {
			continue
		}
		node := p.ledger.Node(name)
		choices, verdict := node.Place(r, nil)
		if !verdict.Fits() || p.unaligned(node, choices[0].Pool) != "" {
			continue
		}
		list = append(list, offer{name, p.nodes.Shut(name), p.preference(name), node.Score(r)})
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
func (p *placing) preference(node string) int {
	if i := slices.Index(p.request.Topology.Preferred, node); i >= 0 {
		return i
	}
	return len(p.request.Topology.Preferred)
}

// take holds room on a node. If room is held there already, it takes the pool of that room. Room
// cannot be held for a volume without a claim: the ledger first learns of it from its Volume.
func (p *placing) take(node string, r *ledger.Request) (place, bool) {
	if p.owner().Kind == ledger.ByVolume {
		choices, verdict := p.ledger.Node(node).Place(r, nil)
		if !verdict.Fits() {
			return place{}, false
		}
		return place{node, choices[0].Pool}, true
	}
	if pool, held := p.ledger.Held(p.owner(), node); held && p.request.Pool == "" && p.origin == nil {
		there, _ := p.ledger.Request(p.options(), p.demand(pool))
		if at, ok := p.reserve(node, there); ok {
			return at, true
		}
	}
	return p.reserve(node, r)
}

func (p *placing) reserve(node string, r *ledger.Request) (place, bool) {
	choices, verdict := p.ledger.Reserve(node, r)
	if !verdict.Fits() {
		return place{}, false
	}
	p.reserved = append(p.reserved, node)
	return place{node, choices[0].Pool}, true
}

// release gives back the room that the call holds.
func (p *placing) release() {
	for _, node := range p.reserved {
		p.ledger.Unreserve(p.options().Pod, node)
	}
}
