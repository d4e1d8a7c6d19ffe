package ledger

import (
	"maps"
	"slices"
)

// Snapshot is all nodes at one moment. It never changes and needs no lock.
type Snapshot struct {
	nodes map[string]*Node
}

// Snapshot of the ledger. It costs one pointer per node.
func (s *shelf) Snapshot() Snapshot { return Snapshot{maps.Clone(s.nodes)} }

// Node returns a node of the snapshot, or nil.
func (s Snapshot) Node(name string) *Node { return s.nodes[name] }

// NodeNames lists the nodes in order.
func (s Snapshot) NodeNames() []string { return slices.Sorted(maps.Keys(s.nodes)) }

// Without is the snapshot as it would be if these owners had nothing anywhere.
func (s Snapshot) Without(owners ...Owner) Snapshot {
	nodes := make(map[string]*Node, len(s.nodes))
	for name, n := range s.nodes {
		nodes[name] = n.Without(owners...)
	}
	return Snapshot{nodes}
}

// Fact is one charge, for people and for comparison with the contents of the pool.
type Fact struct {
	Owner Owner
	Class string
	// Bytes that were asked for, and how much they take of the pool.
	Bytes, Charge int64
	// Carving is whether it may not be there yet.
	Carving bool
	// Listed is whether only the node's inventory knows of it.
	Listed bool
}

// PoolState is a pool with all that is charged to it.
type PoolState struct {
	Pool     Pool
	Reported bool
	// Used is Foreign and all charges.
	Used  int64
	Facts []Fact // by owner
}

// Pools lists the charges on a node, for `kubectl berth` and for the doctor.
func (s *shelf) Pools(node string) []PoolState {
	n := s.nodes[node]
	if n == nil {
		return nil
	}
	states := make([]PoolState, 0, len(n.books))
	for _, b := range n.books {
		states = append(states, PoolState{Pool: b.Pool, Reported: b.reported, Used: b.used, Facts: s.facts(b)})
	}
	return states
}

func (s *shelf) facts(b *book) []Fact {
	facts := make([]Fact, 0, len(b.volumes)+len(b.holds)+len(b.Inventory))
	for _, f := range slices.Concat(b.volumes, b.holds) {
		facts = append(facts, Fact{*f.owner, s.classes.names[f.class], f.bytes, f.charge, f.carving, false})
	}
	for _, item := range b.Inventory {
		if b.fact(&item.Owner) == nil {
			facts = append(facts, Fact{Owner: item.Owner, Bytes: item.Taken, Charge: item.Taken, Listed: true})
		}
	}
	slices.SortFunc(facts, func(a, b Fact) int { return a.Owner.Compare(b.Owner) })
	return facts
}

// Room is how much a node can offer a class, each figure in the terms of the pools
// and in whole units.
type Room struct {
	// Largest charge that one pool can still take, and the sum over all pools.
	Largest, Sum int64
}

// Room of a class on a node. A controller publishes it as capacity where it has to.
func (s *shelf) Room(node, class string) Room {
	id, known := s.classes.find(class)
	n := s.nodes[node]
	if known == nil || n == nil || !n.ready || !s.synced {
		return Room{}
	}
	var r Room
	for _, b := range n.books {
		if b.closed(id) == Fits {
			room := max(b.room(id), 0)
			room -= room % b.Unit // no volume can have less than a whole unit
			r.Largest, r.Sum = max(r.Largest, room), addUp(r.Sum, room)
		}
	}
	return r
}

// Orphan returns the place at which a node lists something of the owner that no
// object accounts for. If there are several, it is the first in order.
func (s *shelf) Orphan(owner Owner) (node, pool string, found bool) {
	for _, name := range s.NodeNames() {
		for _, b := range s.nodes[name].books {
			for i := range b.Inventory {
				if item := &b.Inventory[i]; item.Orphan && item.Owner == owner {
					return name, b.Name, true
				}
			}
		}
	}
	return "", "", false
}
