package ledger

import (
	"maps"
	"slices"
	"strings"
)

// ObserveNode takes in a node's report, whole. The error names pools that cannot
// be believed; the rest of the report counts all the same.
func (l *Ledger) ObserveNode(r Report) error {
	pools, err := r.valid()
	old := l.nodes[r.Node]
	if old == nil {
		old = &Node{name: r.Node}
	}
	next := &Node{name: r.Node, reported: true, ready: r.Ready, features: r.Features, domain: r.Domain, generation: r.Generation}
	for _, b := range old.books {
		if !slices.ContainsFunc(pools, func(p Pool) bool { return p.Name == b.Name }) {
			if gone := l.absent(b); !gone.empty() {
				next.books = append(next.books, gone)
			}
		}
	}
	for i := range pools {
		next.books = append(next.books, l.report(old.book(pools[i].Name), pools[i]))
	}
	slices.SortFunc(next.books, func(a, b *book) int { return strings.Compare(a.Name, b.Name) })
	l.setNode(next)
	l.relisted(old, next)
	l.clear(r.Node, func(at remain) bool { return r.Generation == 0 || at.revision <= r.Generation })
	l.revisit(r.Node)
	return err
}

// ObserveNodeGone takes in that a node reports no more. Its charges stand: a node
// that is gone is no proof that its data is gone.
func (l *Ledger) ObserveNodeGone(name string) {
	old := l.nodes[name]
	if old == nil {
		return
	}
	next := &Node{name: name}
	for _, b := range old.books {
		if gone := l.absent(b); !gone.empty() {
			next.books = append(next.books, gone)
		}
	}
	l.setNode(next)
	l.relisted(old)
	l.clear(name, func(remain) bool { return true })
}

// relisted settles again the owner of every item that one of the nodes lists.
func (l *Ledger) relisted(nodes ...*Node) {
	for _, n := range nodes {
		for _, b := range n.books {
			for i := range b.Inventory {
				l.review(b.Inventory[i].Owner)
			}
		}
	}
}

// ObserveClass takes in a PoolClass, new or changed. A class that is not valid is
// refused, and stays as it was before.
func (l *Ledger) ObserveClass(c Class) error {
	if err := c.Check(); err != nil {
		return err
	}
	id := l.classID(c.Name)
	if now := l.classes[id]; now != nil && now.equal(&c) {
		return nil
	}
	l.setClass(id, &c)
	return nil
}

// ObserveClassGone takes in that a PoolClass is gone: nothing new fits it.
func (l *Ledger) ObserveClassGone(name string) {
	if id, known := l.classIDs[name]; known && l.classes[id] != nil {
		l.setClass(id, nil)
	}
}

// setClass changes a class and reckons every book anew.
func (l *Ledger) setClass(id int, c *Class) {
	l.classes[id] = c
	for name, n := range l.nodes {
		next := *n
		next.books = slices.Clone(n.books)
		for i, b := range n.books {
			next.books[i] = l.rebook(b, b.Pool, b.reported)
		}
		l.nodes[name] = &next
	}
	l.revisit(slices.Sorted(maps.Keys(l.waiting))...)
}

// report makes the book of a reported pool, with the charges it had.
func (l *Ledger) report(old *book, p Pool) *book {
	if old == nil {
		old = &book{}
	}
	return l.rebook(old, p, true)
}

// rebook makes a book with the same facts under another report or other classes.
func (l *Ledger) rebook(old *book, p Pool, reported bool) *book {
	next := &book{Pool: p, reported: reported, volumes: slices.Clone(old.volumes), holds: slices.Clone(old.holds)}
	for _, name := range p.Classes {
		id, known := l.classIDs[name]
		if !known || l.classes[id] == nil {
			continue
		}
		c := l.classes[id]
		limit, closed := p.Kind.Limit(&p, c)
		next.offers = append(next.offers, offer{class: id, limit: limit, closed: closed})
	}
	for i, f := range next.volumes {
		next.volumes[i] = l.reckon(next, f)
	}
	for i, f := range next.holds {
		next.holds[i] = l.reckon(next, f)
	}
	next.addVolumes()
	return next
}

// absent is the book of a pool that the node does not report. It keeps only the
// facts. When the pool comes back they are still there, reckoned anew.
func (l *Ledger) absent(b *book) *book { return l.rebook(b, Pool{Name: b.Name}, false) }

// clear ends the remains on a node for which over is true: the node has reported
// about them since, or is gone.
func (l *Ledger) clear(node string, over func(remain) bool) {
	for _, name := range slices.Sorted(maps.Keys(l.remains[node])) {
		v := l.volumes[name]
		l.remain(v, slices.DeleteFunc(slices.Clone(v.remains), func(r remain) bool { return r.node == node && over(r) }))
		l.settleVolume(v)
	}
	if len(l.remains[node]) == 0 {
		delete(l.remains, node)
	}
}
