package ledger

import "slices"

// book is one pool and all that is charged to it. A book never changes: every
// change makes a new one, so that readers of a Node need no lock.
type book struct {
	Pool
	// reported is whether the pool was in the node's last report. A pool that is
	// absent keeps its charges.
	reported bool
	offers   []offer
	// volumes are the facts of Volumes, holds those of claims and inline volumes.
	// They are kept apart, each with its sum, because a reservation must not cost
	// more where there are thousands of volumes.
	volumes, holds []fact
	volumesSum     sum
	sum
}

// sum is the total of facts. Every change of the facts computes it anew; it is
// never incremented.
type sum struct {
	// used is the sum of the charges; for the whole book also foreign use and the
	// items that only the inventory lists.
	used int64
	// yielding is the part of used that gives way to a primary.
	yielding int64
	// promised is the lowest limit among the classes of facts that have yet to be
	// carved. Nothing new may go beyond it: a volume of a class with little spare
	// must not take the room that was promised to one with more.
	promised int64
}

// offer is a pool's limit for one class, and why it takes nothing new of the class.
type offer struct {
	class  int
	limit  int64
	closed Reason
}

// fact is one owner's charge on one pool.
type fact struct {
	owner *Owner
	// bytes are asked for; charge is how much of the pool they take.
	bytes, charge int64
	class         int32
	// stated charges come from the node and are not reckoned.
	stated bool
	// carving: it is not there yet, or not in its full size.
	carving bool
	// unmade: nothing of it is there yet.
	unmade bool
	yields bool
}

// add adds facts to a sum.
func (b *book) add(start sum, facts []fact) sum {
	for i := range facts {
		f := &facts[i]
		start.used = addUp(start.used, f.charge)
		if f.yields {
			start.yielding = addUp(start.yielding, f.charge)
		}
		if f.carving {
			start.promised = min(start.promised, b.limit(int(f.class)))
		}
	}
	return start
}

// addVolumes sums up the facts of Volumes, and then the book.
func (b *book) addVolumes() {
	b.volumesSum = b.add(sum{promised: unbounded}, b.volumes)
	b.addAll()
}

// addAll sums the book up.
func (b *book) addAll() {
	b.sum = b.add(b.volumesSum, b.holds)
	b.used = addUp(b.used, b.Foreign)
	for i := range b.Inventory {
		if item := &b.Inventory[i]; b.fact(&item.Owner) == nil {
			b.used = addUp(b.used, item.Taken)
		}
	}
}

// limit of a class, whether or not it is open for new volumes.
func (b *book) limit(class int) int64 {
	if o := b.offer(class); o != nil {
		return o.limit
	}
	return unbounded
}

func (b *book) offer(class int) *offer {
	for i := range b.offers {
		if b.offers[i].class == class {
			return &b.offers[i]
		}
	}
	return nil
}

// closed is why the pool takes nothing new of the class, however much is free.
func (b *book) closed(class int) Reason {
	o := b.offer(class)
	switch {
	case o == nil: // nor does a pool that is not reported serve a class
		return NotServed
	case b.Health == Missing:
		return PoolMissing
	case b.Health != Healthy:
		return PoolUnhealthy
	default:
		return o.closed
	}
}

// taken is the use that counts against a new volume. Standbys count only against
// standbys.
func (b *book) taken(yields bool) int64 {
	if yields {
		return b.used
	}
	return b.used - b.yielding
}

// room for a new volume of the class; negative when more is taken than may be.
func (b *book) room(class int) int64 {
	return min(b.limit(class), b.promised) - b.taken(false)
}

// made is the use of the pool by everything that exists, except one owner's.
func (b *book) made(but *Owner) int64 {
	sum := b.Foreign
	for _, facts := range [][]fact{b.volumes, b.holds} {
		for i := range facts {
			if f := &facts[i]; !f.unmade && *f.owner != *but {
				sum = addUp(sum, f.charge)
			}
		}
	}
	for i := range b.Inventory {
		if item := &b.Inventory[i]; b.fact(&item.Owner) == nil {
			sum = addUp(sum, item.Taken)
		}
	}
	return sum
}

// find returns the index of the owner's fact, or -1. Most calls pass the same
// pointer that the fact has.
func find(facts []fact, owner *Owner) int {
	for i := range facts {
		if facts[i].owner == owner || *facts[i].owner == *owner {
			return i
		}
	}
	return -1
}

// fact returns the owner's fact, or nil.
func (b *book) fact(owner *Owner) *fact {
	facts := *b.facts(owner)
	if at := find(facts, owner); at >= 0 {
		return &facts[at]
	}
	return nil
}

// facts returns the list that the owner's fact belongs in.
func (b *book) facts(owner *Owner) *[]fact {
	if owner.Kind == ByVolume {
		return &b.volumes
	}
	return &b.holds
}

// addFor sums the book up after the owner's fact has changed.
func (b *book) addFor(owner *Owner) {
	if owner.Kind == ByVolume {
		b.addVolumes()
	} else {
		b.addAll()
	}
}

// with returns a book in which the owner's fact is f.
func (b *book) with(f fact) *book {
	next := *b
	facts := next.facts(f.owner)
	at := find(*facts, f.owner)
	switch {
	case at >= 0 && (*facts)[at] == f:
		return b
	case at >= 0:
		*facts = slices.Clone(*facts)
		(*facts)[at] = f
	default:
		*facts = slices.Concat(*facts, []fact{f}) // to the exact size: books are many
	}
	next.addFor(f.owner)
	return &next
}

// dropped returns a book without the owner's fact. The owner's items in the
// inventory stay, because they are the node's statement.
func (b *book) dropped(owner *Owner) *book {
	next := *b
	facts := next.facts(owner)
	*facts = slices.DeleteFunc(slices.Clone(*facts), func(f fact) bool { return *f.owner == *owner })
	next.addFor(owner)
	return &next
}

// without returns a book without the facts and items of the owners that gone
// names.
func (b *book) without(gone func(*Owner) bool) *book {
	fact := func(f fact) bool { return gone(f.owner) }
	item := func(i Item) bool { return gone(&i.Owner) }
	if !slices.ContainsFunc(b.volumes, fact) && !slices.ContainsFunc(b.holds, fact) && !slices.ContainsFunc(b.Inventory, item) {
		return b
	}
	next := *b
	next.volumes = slices.DeleteFunc(slices.Clone(b.volumes), fact)
	next.holds = slices.DeleteFunc(slices.Clone(b.holds), fact)
	next.Inventory = slices.DeleteFunc(slices.Clone(b.Inventory), item)
	next.addVolumes()
	return &next
}

// empty is whether the book can be forgotten.
func (b *book) empty() bool { return !b.reported && len(b.volumes) == 0 && len(b.holds) == 0 }
