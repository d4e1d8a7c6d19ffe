package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// shelf is all room there is: the nodes, their pools, and what is charged to each. It knows owners by name
// only. What an owner is to have, and where, is decided by those who post it here.
type shelf struct {
	// synced tells whether SetSynced was called. Before that, the ledger refuses every request and gives waiting
	// owners no room.
	synced  bool
	classes classes
	nodes   map[string]*Node
	waiting waiting
}

func newShelf() *shelf {
	return &shelf{classes: classes{ids: map[string]int{}}, nodes: map[string]*Node{}, waiting: waiting{}}
}

// Synced is whether SetSynced was called.
func (s *shelf) Synced() bool { return s.synced }

// Node returns the node as it is now, or nil when nothing is known of it.
func (s *shelf) Node(name string) *Node { return s.nodes[name] }

// NodeNames lists the known nodes in order.
func (s *shelf) NodeNames() []string { return slices.Sorted(maps.Keys(s.nodes)) }

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
func (s *shelf) post(posted []place, owner *Owner, wanted []posting) []place {
	for _, at := range posted {
		if !slices.ContainsFunc(wanted, func(w posting) bool { return w.place == at }) {
			s.edit(at, func(b *book) *book { return b.dropped(owner) })
		}
	}
	for i := range wanted {
		w := &wanted[i]
		s.edit(w.place, func(b *book) *book { return b.with(s.reckon(b, w.fact)) })
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

// stated is the owner's charge at a place where it is posted, fixed so that it is not reckoned again.
func (s *shelf) stated(owner *Owner, at place) posting {
	f := *s.nodes[at.node].book(at.pool).fact(owner)
	f.stated = true
	return posting{at, f}
}

// reckon fills in a fact's charge. Before the first report of the pool its kind and
// unit are unknown, and the charge is the bytes themselves.
func (s *shelf) reckon(b *book, f fact) fact {
	switch {
	case f.stated:
	case b.Kind == nil:
		f.charge = min(f.bytes, unbounded)
	default:
		f.charge = min(b.Kind.Charge(&b.Pool, s.classes.class(int(f.class)), f.bytes), unbounded)
	}
	return f
}

// edit replaces one book. It makes the node and the book where there are none:
// charges may be known before the report is.
func (s *shelf) edit(at place, change func(*book) *book) {
	node := s.nodes[at.node]
	if node == nil {
		node = &Node{name: at.node}
	}
	old := node.book(at.pool)
	if old == nil {
		old = &book{Pool: Pool{Name: at.pool}, volumesSum: sum{promised: unbounded}}
	}
	s.setNode(node.with(change(old)))
}

// setNode stores a node, or forgets it if it has neither a report nor a book.
func (s *shelf) setNode(n *Node) {
	if !n.reported && len(n.books) == 0 {
		delete(s.nodes, n.name)
		return
	}
	s.nodes[n.name] = n
}

// report takes in a node's report. It returns the node as it was and as it is by now. The error names pools
// that cannot be believed.
func (s *shelf) report(r Report) (old, next *Node, err error) {
	pools, err := r.valid()
	if old = s.nodes[r.Node]; old == nil {
		old = &Node{name: r.Node}
	}
	next = &Node{name: r.Node, reported: true, ready: r.Ready, features: r.Features, domain: r.Domain, generation: r.Generation}
	next.books = s.absent(old, pools)
	for i := range pools {
		next.books = append(next.books, s.rebook(old.book(pools[i].Name), pools[i], true))
	}
	slices.SortFunc(next.books, func(a, b *book) int { return strings.Compare(a.Name, b.Name) })
	s.setNode(next)
	return old, next, err
}

// reportGone takes back a node's report, and returns the node as it was; nil if nothing is known of it.
func (s *shelf) reportGone(name string) *Node {
	old := s.nodes[name]
	if old != nil {
		s.setNode(&Node{name: name, books: s.absent(old, nil)})
	}
	return old
}

// absent are the books of the pools that the node does not report. They keep only the
// facts. When a pool comes back they are still there, reckoned anew.
func (s *shelf) absent(old *Node, reported []Pool) []*book {
	var books []*book
	for _, b := range old.books {
		if slices.ContainsFunc(reported, func(p Pool) bool { return p.Name == b.Name }) {
			continue
		}
		if gone := s.rebook(b, Pool{Name: b.Name}, false); !gone.empty() {
			books = append(books, gone)
		}
	}
	return books
}

// setClass changes a class and reckons every book anew.
func (s *shelf) setClass(id int, c *Class) {
	s.classes.known[id] = c
	for name, n := range s.nodes {
		next := *n
		next.books = slices.Clone(n.books)
		for i, b := range n.books {
			next.books[i] = s.rebook(b, b.Pool, b.reported)
		}
		s.nodes[name] = &next
	}
}

// rebook makes a book with the same facts under another report or other classes. A pool that is new has no
// old book.
func (s *shelf) rebook(old *book, p Pool, reported bool) *book {
	next := &book{Pool: p, reported: reported}
	if old != nil {
		next.volumes, next.holds = slices.Clone(old.volumes), slices.Clone(old.holds)
	}
	for _, name := range p.Classes {
		if id, c := s.classes.find(name); c != nil {
			limit, closed := p.Kind.Limit(&p, c)
			next.offers = append(next.offers, offer{class: id, limit: limit, closed: closed})
		}
	}
	for i, f := range next.volumes {
		next.volumes[i] = s.reckon(next, f)
	}
	for i, f := range next.holds {
		next.holds[i] = s.reckon(next, f)
	}
	next.addVolumes()
	return next
}

// unheard is whether the report of a node, on which something is posted, is older than the revision.
// A node that has not reported has generation 0.
func (s *shelf) unheard(node string, revision int64) bool {
	n := s.nodes[node]
	return n.generation > 0 && n.generation < revision
}

// waiting are the owners, by node, that should have room there and could not be
// given it yet.
type waiting map[string]map[Owner]bool

// await notes which node an owner waits for, in place of the one that it waited
// for before; "" is none.
func (w waiting) await(o Owner, waits *string, node string) {
	if *waits == node {
		return
	}
	before := w[*waits]
	if delete(before, o); len(before) == 0 {
		delete(w, *waits)
	}
	if *waits = node; node == "" {
		return
	}
	if w[node] == nil {
		w[node] = map[Owner]bool{}
	}
	w[node][o] = true
}

// owners are those that wait for one of the nodes. Inline volumes
// come first: they may exist already, while a claim can still go elsewhere.
func (w waiting) owners(nodes []string) []Owner {
	var owners []Owner
	for _, node := range nodes {
		owners = slices.AppendSeq(owners, maps.Keys(w[node]))
	}
	slices.SortFunc(owners, func(a, b Owner) int { return cmp.Or(cmp.Compare(b.Kind, a.Kind), a.Compare(b)) })
	return owners
}
