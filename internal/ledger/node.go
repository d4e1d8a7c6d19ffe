package ledger

import (
	"slices"
	"strings"
)

// Node is one node of the ledger at one moment. It never changes, so any number
// of goroutines may ask it without a lock; the ledger replaces it with every
// change.
type Node struct {
	name       string
	reported   bool
	ready      bool
	features   []string
	domain     string
	generation int64
	books      []*book // by name
}

// Name of the node.
func (n *Node) Name() string { return n.name }

func (n *Node) index(pool string) (int, bool) {
	return slices.BinarySearchFunc(n.books, pool, func(b *book, name string) int { return strings.Compare(b.Name, name) })
}

// book of a pool, or nil.
func (n *Node) book(pool string) *book {
	if at, found := n.index(pool); found {
		return n.books[at]
	}
	return nil
}

// Pool returns a pool as the node reported it; false if it reported none of that
// name.
func (n *Node) Pool(name string) (Pool, bool) {
	if n == nil {
		return Pool{}, false
	}
	b := n.book(name)
	if b == nil || !b.reported {
		return Pool{}, false
	}
	return b.Pool, true
}

// with returns a node in which the pool's book is b; an empty book goes.
func (n *Node) with(b *book) *Node {
	at, found := n.index(b.Name)
	next := *n
	switch {
	case b.empty(): // it had charges, so it is found
		next.books = slices.Delete(slices.Clone(n.books), at, at+1)
	case found && n.books[at] == b:
		return n
	case found:
		next.books = slices.Clone(n.books)
		next.books[at] = b
	default:
		next.books = slices.Insert(slices.Clone(n.books), at, b)
	}
	return &next
}

// Without is the node as it would be if these owners had nothing on it, as after an
// eviction. Evicting a pod frees only its inline volumes, so a preemption asks with
// those alone.
func (n *Node) Without(owners ...Owner) *Node {
	next := *n
	next.books = slices.Clone(n.books)
	for i, b := range n.books {
		next.books[i] = b.without(func(o *Owner) bool { return slices.Contains(owners, *o) })
	}
	return &next
}

// WithoutPods is the node as it would be if these pods were evicted: without their
// inline volumes. Their claims keep their room.
func (n *Node) WithoutPods(uids ...string) *Node {
	next := *n
	next.books = slices.Clone(n.books)
	for i, b := range n.books {
		next.books[i] = b.without(func(o *Owner) bool { return o.Kind == ByPod && slices.Contains(uids, o.ID) })
	}
	return &next
}

// where returns the pool in which the node's inventory lists the owner.
func (n *Node) where(owner *Owner) (string, bool) {
	for _, b := range n.books {
		for i := range b.Inventory {
			if b.Inventory[i].Owner == *owner {
				return b.Name, true
			}
		}
	}
	return "", false
}
