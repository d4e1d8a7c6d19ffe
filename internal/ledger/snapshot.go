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
func (l *Ledger) Snapshot() Snapshot { return Snapshot{maps.Clone(l.nodes)} }

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
