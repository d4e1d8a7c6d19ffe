package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/ledger"
)

// Compare returns an error when the ledger says anything that the events it was
// told do not bear out.
func (m *Model) Compare(l *ledger.Ledger) error {
	actual, used := dump(l)
	m.prune()
	if err := m.adopt(actual, l.Synced()); err != nil {
		return err
	}
	expected := m.Facts()
	if err := sameFacts(expected, actual); err != nil {
		return err
	}
	for at, got := range used {
		if want := m.add(expected, at.node, at.pool).used; got != want {
			return fmt.Errorf("pool %s of node %s: used is %d, want %d", at.pool, at.node, got, want)
		}
	}
	if m.compared++; m.compared%4 != 0 {
		return nil // the room follows from the rest; looking now and then will do
	}
	for node := range m.reports {
		for class := range m.classes {
			if got, want := l.Room(node, class), m.Room(expected, node, class); l.Synced() && got != want {
				return fmt.Errorf("room of class %s on node %s: %+v, want %+v", class, node, got, want)
			}
		}
	}
	return nil
}

type place struct{ node, pool string }

// dump is everything the ledger has charged.
func dump(l *ledger.Ledger) ([]Fact, map[place]int64) {
	var facts []Fact
	used := map[place]int64{}
	for _, node := range l.NodeNames() {
		for _, p := range l.Pools(node) {
			used[place{node, p.Pool.Name}] = p.Used
			for _, f := range p.Facts {
				facts = append(facts, Fact{
					Node: node, Pool: p.Pool.Name, Owner: f.Owner, Class: f.Class,
					Bytes: f.Bytes, Charge: f.Charge, Carving: f.Carving, Listed: f.Listed,
				})
			}
		}
	}
	return facts, used
}

func compareFacts(a, b Fact) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pool, b.Pool), a.Owner.Compare(b.Owner))
}

// sameFacts compares two sets of facts.
func sameFacts(expected, actual []Fact) error {
	expected = slices.Clone(expected) // the caller's say more
	for i := range expected {
		f := &expected[i]
		f.yields, f.stated, f.unmade, f.over = false, false, false, false
	}
	slices.SortFunc(expected, compareFacts)
	slices.SortFunc(actual, compareFacts)
	if slices.Equal(expected, actual) {
		return nil
	}
	var b strings.Builder
	for _, f := range actual {
		if !slices.Contains(expected, f) {
			fmt.Fprintf(&b, "\n  the ledger has        %v", f)
		}
	}
	for _, f := range expected {
		if !slices.Contains(actual, f) {
			fmt.Fprintf(&b, "\n  the events bear out   %v", f)
		}
	}
	if b.Len() == 0 {
		b.WriteString("\n  a fact is there twice")
	}
	return fmt.Errorf("the ledger and the events differ:%s", b.String())
}

// String is one line.
func (f Fact) String() string {
	return fmt.Sprintf("%v on %s/%s class %q bytes %d charge %d carving %t listed %t",
		f.Owner, f.Node, f.Pool, f.Class, f.Bytes, f.Charge, f.Carving, f.Listed)
}
