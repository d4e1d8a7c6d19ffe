package ledger

import (
	"maps"
	"slices"
)

// Ledger records what every pool of every node has promised, by owner. The zero
// Ledger is not usable: call New. It is not safe for concurrent use; the Nodes and
// Snapshots it hands out are.
type Ledger struct {
	synced bool

	classIDs   map[string]int
	classNames []string // by id
	classes    []*Class // by id; nil while unknown

	nodes    map[string]*Node
	volumes  map[string]*volume
	accounts map[Owner]*account
	pvs      map[string]PVObject
	pods     map[string]*pod

	// waiting are the owners, by node, that should have room there and could not be
	// given it yet.
	waiting map[string]map[Owner]bool
	// remains are the Volumes, by node, that have remains there.
	remains map[string]map[string]bool
}

// New returns an empty ledger that is not synced.
func New() *Ledger {
	return &Ledger{
		classIDs: map[string]int{},
		nodes:    map[string]*Node{},
		volumes:  map[string]*volume{},
		accounts: map[Owner]*account{},
		pvs:      map[string]PVObject{},
		pods:     map[string]*pod{},
		waiting:  map[string]map[Owner]bool{},
		remains:  map[string]map[string]bool{},
	}
}

// SetSynced says that every kind of object has been listed once. Before that, the
// ledger answers every question with NotSynced and gives nothing to waiting owners:
// a ledger that has seen the nodes and not yet the volumes would call full pools
// empty.
func (l *Ledger) SetSynced() {
	l.synced = true
	l.revisit(slices.Sorted(maps.Keys(l.waiting))...)
}

// Synced is whether SetSynced was called.
func (l *Ledger) Synced() bool { return l.synced }

// Node returns the node as it is now, or nil when nothing is known of it.
func (l *Ledger) Node(name string) *Node { return l.nodes[name] }

// NodeNames lists the known nodes in order.
func (l *Ledger) NodeNames() []string { return slices.Sorted(maps.Keys(l.nodes)) }

// classID is the number of a class in this ledger. Facts and offers use it whether
// or not the class has been observed.
func (l *Ledger) classID(name string) int {
	id, known := l.classIDs[name]
	if !known {
		id = len(l.classes)
		l.classIDs[name] = id
		l.classes = append(l.classes, nil)
		l.classNames = append(l.classNames, name)
	}
	return id
}

// noClass stands in for a class that was not observed yet: a linear layout.
var noClass = &Class{}

func (l *Ledger) class(id int) *Class {
	if c := l.classes[id]; c != nil {
		return c
	}
	return noClass
}

// place is a pool of a node.
type place struct{ node, pool string }

// posting is a fact and its place.
type posting struct {
	place
	fact
}

// post sets the owner's facts in all books to wanted. It refunds the places that
// are in posted, the owner's own record, and not in wanted, whatever event led
// here.
func (l *Ledger) post(posted []place, owner *Owner, wanted []posting) []place {
	for _, at := range posted {
		if !slices.ContainsFunc(wanted, func(w posting) bool { return w.place == at }) {
			l.edit(at, func(b *book) *book { return b.dropped(owner) })
		}
	}
	for i := range wanted {
		w := &wanted[i]
		l.edit(w.place, func(b *book) *book { return b.with(l.reckon(b, w.fact)) })
	}
	if slices.EqualFunc(posted, wanted, func(p place, w posting) bool { return p == w.place }) {
		return posted
	}
	places := make([]place, len(wanted))
	for i := range wanted {
		places[i] = wanted[i].place
	}
	return places
}

// reckon fills in a fact's charge. Before the first report of the pool its kind and
// unit are unknown, and the charge is the bytes themselves.
func (l *Ledger) reckon(b *book, f fact) fact {
	switch {
	case f.stated:
	case b.Kind == nil:
		f.charge = min(f.bytes, unbounded)
	default:
		f.charge = min(b.Kind.Charge(&b.Pool, l.class(int(f.class)), f.bytes), unbounded)
	}
	return f
}

// edit replaces one book. It makes the node and the book where there are none:
// charges may be known before the report is.
func (l *Ledger) edit(at place, change func(*book) *book) {
	node := l.nodes[at.node]
	if node == nil {
		node = &Node{name: at.node}
	}
	old := node.book(at.pool)
	if old == nil {
		old = &book{Pool: Pool{Name: at.pool}, volumesSum: sum{promised: unbounded}}
	}
	l.setNode(node.with(change(old)))
}

// setNode stores a node, or forgets it if it has neither a report nor a book.
func (l *Ledger) setNode(n *Node) {
	if !n.reported && len(n.books) == 0 {
		delete(l.nodes, n.name)
		return
	}
	l.nodes[n.name] = n
}
