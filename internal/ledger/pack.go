package ledger

// maxSteps bounds a search. Eight volumes over four pools never come near it; a
// pod made to be awkward is refused instead of stopping the scheduler.
const maxSteps = 1 << 14

// mask is a set of pools.
type mask [maxPools / 64]uint64

func (m *mask) add(i int)      { m[i/64] |= 1 << (i % 64) }
func (m *mask) has(i int) bool { return m[i/64]&(1<<(i%64)) != 0 }

// packing is the search for a pool for each item of a request. It is exact: as
// soon as one way exists it finds one, preferring pools by the strategy.
type packing struct {
	node    *Node
	items   []item
	options *RequestOptions // a pointer, so that its strategy does not move the rest to the heap
	refused Reason          // before any search

	// need is how much each item takes of each pool, item by item; -1 is no.
	need []int64
	// use and top of each pool: how much is taken, and how much may be.
	use, top []int64
	// least is, for each item, the least that it and all items after it take
	// together.
	least []int64
	// chosen is the pool of each item.
	chosen []int
	// spare are the pools in which the search has placed a standby that yields. Their use
	// counts all standbys that yield: such a standby takes only a slot that is spare.
	spare  mask
	steps  int
	gaveUp bool
}

// scratch keeps the memory of an ordinary search on the stack.
type scratch struct {
	need     [96]int64
	use, top [24]int64
	least    [17]int64
	chosen   [16]int
}

// prepare fills the tables. It fails when an item fits no pool even alone.
func (p *packing) prepare() (reason Reason, at int) {
	for i, b := range p.node.books {
		p.use[i], p.top[i] = b.taken(false), b.promised
	}
	for k := len(p.items) - 1; k >= 0; k-- {
		least, reason := p.row(k)
		if reason != Fits {
			return reason, k
		}
		p.least[k] = addUp(p.least[k+1], least)
	}
	return Fits, -1
}

// row fills in how much item k takes of each pool, and returns the least of it.
func (p *packing) row(k int) (least int64, reason Reason) {
	it := &p.items[k]
	row := p.need[k*len(p.node.books):][:len(p.node.books)]
	least, reason = unbounded, NotServed
	has := it.on(p.node.name)
	fixed := has != nil && has.fixed
	switch {
	case has == nil && it.shared:
		return 0, HeldElsewhere
	case !fixed && it.elsewhere(p.node.name):
		return 0, SourceElsewhere
	}
	for i, b := range p.node.books {
		row[i] = -1
		var why Reason
		switch {
		case fixed && has.pool == b.Name:
			row[i], why = p.standing(it, has, i, b)
		case fixed:
			why = OtherPool
		default:
			row[i], why = p.alone(it, i, b)
		}
		if why == Fits {
			least = min(least, row[i])
		}
		if why == Fits || reason != Fits && why > reason {
			reason = why
		}
	}
	return least, reason
}

// standing is how much more an item takes that stands in the pool already.
func (p *packing) standing(it *item, has *standing, i int, b *book) (int64, Reason) {
	need := it.owed(has, b)
	if need > 0 && need > min(p.top[i], b.limit(it.id))-p.use[i] {
		return -1, NoRoom
	}
	return need, Fits
}

// alone is how much the item takes of the pool, and whether it fits there alone.
func (p *packing) alone(it *item, i int, b *book) (int64, Reason) {
	if why := it.barred(p.node, b); why != Fits {
		return -1, why
	}
	need := min(b.Kind.Charge(&b.Pool, it.class, it.Bytes), unbounded)
	if need > min(p.top[i], b.limit(it.id))-p.use[i]-p.yielding(it, i) {
		return -1, NoRoom
	}
	return need, Fits
}

// yielding is how much the standbys that yield take of the pool, if they count against the item and
// were not counted before.
func (p *packing) yielding(it *item, i int) int64 {
	if !it.yields || p.spare.has(i) {
		return 0
	}
	return p.node.books[i].sum.yielding
}

// space is the most that all pools together could still take.
func (p *packing) space() int64 {
	var sum int64
	for i, b := range p.node.books {
		most := int64(0)
		for k := range p.items {
			if p.need[k*len(p.node.books)+i] > 0 {
				most = max(most, b.limit(p.items[k].id))
			}
		}
		sum = addUp(sum, max(min(most, p.top[i])-p.use[i], 0))
	}
	return sum
}

// search places the items from the k-th on into the room that is left. Pools in
// banned were found useless for an item just like this one.
func (p *packing) search(k int, space int64, banned mask) bool {
	if k == len(p.items) {
		return true
	}
	pools := len(p.node.books)
	tried := banned
	for p.least[k] <= space {
		i := p.best(k, &tried)
		if i < 0 {
			return false
		}
		if p.steps++; p.steps > maxSteps {
			p.gaveUp = true
			return false
		}
		use, top, spare, need := p.use[i], p.top[i], p.spare, p.need[k*pools+i]
		if need > 0 {
			p.use[i] += need + p.yielding(&p.items[k], i)
			p.top[i] = min(top, p.node.books[i].limit(p.items[k].id))
			if p.items[k].yields {
				p.spare.add(i)
			}
		}
		p.chosen[k] = i
		var next mask
		if k+1 < len(p.items) && p.items[k].twin(&p.items[k+1]) {
			next = tried
		}
		if p.search(k+1, space-need, next) {
			return true
		}
		p.use[i], p.top[i], p.spare = use, top, spare
		if p.gaveUp {
			return false
		}
		tried.add(i)
		p.skipAlike(k, i, &tried)
	}
	return false
}

// best returns the best pool left for item k, or -1.
func (p *packing) best(k int, tried *mask) int {
	best, rank := -1, int64(0)
	for i := range p.node.books {
		left, ok := p.left(k, i)
		if !ok || tried.has(i) {
			continue
		}
		b := p.node.books[i]
		of := -b.Total
		if b.Kind == nil || !b.Kind.Whole() {
			of = p.options.strategy().Rank(left, b.limit(p.items[k].id))
		}
		if best < 0 || of > rank {
			best, rank = i, of
		}
	}
	return best
}

// left is the room that would be left in pool i with item k in it, and whether it
// fits.
func (p *packing) left(k, i int) (int64, bool) {
	need := p.need[k*len(p.node.books)+i]
	left := min(p.top[i], p.node.books[i].limit(p.items[k].id)) - p.use[i] - need - p.yielding(&p.items[k], i)
	return left, need == 0 || need > 0 && left >= 0
}

// skipAlike marks the pools that would fail as pool i did: those that are the same
// as pool i for all items that are yet to be placed.
func (p *packing) skipAlike(k, i int, tried *mask) {
	for j := range p.node.books {
		if j != i && !tried.has(j) && p.alike(k, i, j) {
			tried.add(j)
		}
	}
}

func (p *packing) alike(k, i, j int) bool {
	a, b := p.node.books[i], p.node.books[j]
	if a.Kind == nil || b.Kind == nil || a.Kind.Whole() != b.Kind.Whole() || p.use[i] != p.use[j] || p.top[i] != p.top[j] ||
		a.sum.yielding != b.sum.yielding || p.spare.has(i) != p.spare.has(j) {
		return false
	}
	pools := len(p.node.books)
	for ; k < len(p.items); k++ {
		x, y := p.need[k*pools+i], p.need[k*pools+j]
		if (x < 0) != (y < 0) {
			return false
		}
		// A disk takes one volume, so the sizes of two disks need not be the same.
		if !a.Kind.Whole() && (x != y || a.limit(p.items[k].id) != b.limit(p.items[k].id)) {
			return false
		}
	}
	return true
}
