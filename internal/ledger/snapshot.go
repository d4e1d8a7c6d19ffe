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

// Clone returns a ledger of its own with the same state: what is reserved or
// observed in one is not seen in the other. Simulations that are made of Reserve
// and Unreserve alone need none: those undo each other, but that a claim which is
// promised the node anyway may end in another pool there.
func (l *Ledger) Clone() *Ledger {
	c := &Ledger{
		synced: l.synced, classIDs: maps.Clone(l.classIDs), classNames: slices.Clone(l.classNames), classes: slices.Clone(l.classes),
		nodes: maps.Clone(l.nodes), pvs: maps.Clone(l.pvs),
		volumes: make(map[string]*volume, len(l.volumes)), accounts: make(map[Owner]*account, len(l.accounts)),
		pods: make(map[string]*pod, len(l.pods)), waiting: make(map[string]map[Owner]bool, len(l.waiting)),
		remains: make(map[string]map[string]bool, len(l.remains)),
	}
	for name, v := range l.volumes {
		w := *v
		w.replicas, w.pvs, w.remains = slices.Clone(v.replicas), slices.Clone(v.pvs), slices.Clone(v.remains)
		w.linked, w.posted = slices.Clone(v.linked), slices.Clone(v.posted)
		c.volumes[name] = &w
	}
	for owner, a := range l.accounts {
		c.accounts[owner] = c.copyAccount(a)
	}
	for uid, p := range l.pods {
		q := &pod{inline: slices.Clone(p.inline)}
		for _, a := range p.holds {
			q.holds = append(q.holds, c.accounts[*a.owner])
		}
		c.pods[uid] = q
	}
	for node, owners := range l.waiting {
		c.waiting[node] = maps.Clone(owners)
	}
	for node, names := range l.remains {
		c.remains[node] = maps.Clone(names)
	}
	return c
}

func (l *Ledger) copyAccount(a *account) *account {
	b := *a
	b.holds, b.posted, b.links = slices.Clone(a.holds), slices.Clone(a.posted), slices.Clone(a.links)
	for i := range b.holds {
		b.holds[i].holders = slices.Clone(b.holds[i].holders)
	}
	for i, v := range b.links {
		b.links[i] = l.volumes[v.owner.ID]
	}
	return &b
}
