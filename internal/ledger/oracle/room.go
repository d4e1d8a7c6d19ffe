package oracle

import (
	"maps"
	"slices"

	"berth.dev/berth/internal/ledger"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sum is one pool, added up.
type sum struct {
	used, firm int64
	// promised is the lowest limit among the facts that are yet to be carved.
	promised int64
}

// add sums up the facts of a pool.
func (seen *objects) add(facts []Fact, node, pool string) sum {
	p, _ := seen.pool(node, pool)
	s := sum{used: p.Foreign, firm: p.Foreign, promised: ceiling}
	for _, f := range facts {
		if f.Node != node || f.Pool != pool {
			continue
		}
		s.used = min(s.used+f.Charge, ceiling)
		if !f.yields {
			s.firm = min(s.firm+f.Charge, ceiling)
		}
		if top, serves := seen.limit(p, f.Class); f.Carving && serves {
			s.promised = min(s.promised, top)
		}
	}
	return s
}

// limit of a class on a pool that serves it.
func (seen *objects) limit(p *ledger.Pool, class string) (int64, bool) {
	c, known := seen.classes[class]
	if !known || !slices.Contains(p.Classes, class) {
		return 0, false
	}
	top, _ := limit(p, c)
	return top, true
}

// open is whether a pool takes new volumes of the class, full or not.
func (seen *objects) open(node string, p *ledger.Pool, class string) bool {
	c, known := seen.classes[class]
	if !known || !seen.reports[node].Ready || p.Health != ledger.Healthy || !slices.Contains(p.Classes, class) {
		return false
	}
	_, open := limit(p, c)
	return open
}

// Room mirrors the ledger.
func (seen *objects) Room(facts []Fact, node, class string) ledger.Room {
	var room ledger.Room
	for _, p := range seen.reports[node].Pools {
		if !seen.open(node, &p, class) {
			continue
		}
		s := seen.add(facts, node, p.Name)
		top, _ := seen.limit(&p, class)
		free := max(min(top, s.promised)-s.firm, 0) / p.Unit * p.Unit
		room.Largest = max(room.Largest, free)
		room.Sum += free
	}
	return room
}
