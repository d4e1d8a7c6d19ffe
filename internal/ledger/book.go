package ledger

import "slices"

// book is one pool and all that is charged to it. A book never changes: every
// change makes a new one, so that whoever reads a Node needs no lock.
type book struct {
	Pool
	// reported is whether the pool was in the node's last report. What is charged
	// to a pool survives its absence.
	reported bool
	offers   []offer
	facts    []fact

	// used is Foreign, every fact and every item of the inventory that no fact
	// accounts for. It is summed anew from those on every change.
	used int64
	// yielding is the part of used that gives way to a primary.
	yielding int64
	// promised is the lowest limit among the classes of facts that have yet to be
	// carved. Nothing new may go beyond it: a volume of a class with little spare
	// must not take the room in which one with more was promised.
	promised int64
}

// offer is what a pool offers to one class.
type offer struct {
	class  int
	limit  int64
	closed Reason
}

// fact is one owner's charge on one pool.
type fact struct {
	owner *Owner
	// bytes asked for; charge is what that takes of the pool.
	bytes, charge int64
	class         int32
	// stated charges come from the node and are not reckoned.
	stated bool
	// carving: it is not there yet, or not in its full size.
	carving bool
	yields  bool
}

// total sums the book up.
func (b *book) total() {
	b.used, b.yielding, b.promised = b.Foreign, 0, unbounded
	for i := range b.facts {
		f := &b.facts[i]
		b.used = addUp(b.used, f.charge)
		if f.yields {
			b.yielding = addUp(b.yielding, f.charge)
		}
		if f.carving {
			b.promised = min(b.promised, b.limit(int(f.class)))
		}
	}
	for i := range b.Inventory {
		if item := &b.Inventory[i]; b.find(&item.Owner) < 0 {
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

// closed is why the pool takes nothing new of the class, whatever is free.
func (b *book) closed(class int) Reason {
	o := b.offer(class)
	switch {
	case o == nil:
		return NotServed
	case !b.reported || b.Health == Missing:
		return PoolMissing
	case b.Health != Healthy:
		return PoolUnhealthy
	default:
		return o.closed
	}
}

// taken is what stands in the way of a new volume: standbys only stand in the
// way of standbys.
func (b *book) taken(yields bool) int64 {
	if yields {
		return b.used
	}
	return b.used - b.yielding
}

// room for a new volume of the class; negative when there is less than none.
func (b *book) room(class int) int64 {
	return min(b.limit(class), b.promised) - b.taken(false)
}

// find returns the index of the owner's fact, or -1. Most calls come with the
// very pointer.
func (b *book) find(owner *Owner) int {
	for i := range b.facts {
		if b.facts[i].owner == owner || *b.facts[i].owner == *owner {
			return i
		}
	}
	return -1
}

// with returns a book in which the owner's fact is f.
func (b *book) with(f fact) *book {
	next := *b
	at := b.find(f.owner)
	if at >= 0 && b.facts[at] == f {
		return b
	}
	if at < 0 {
		next.facts = append(slices.Clip(b.facts), f)
	} else {
		next.facts = slices.Clone(b.facts)
		next.facts[at] = f
	}
	next.total()
	return &next
}

// without returns a book without the facts and items of the owners that gone
// names.
func (b *book) without(gone func(*Owner) bool) *book {
	if !slices.ContainsFunc(b.facts, func(f fact) bool { return gone(f.owner) }) &&
		!slices.ContainsFunc(b.Inventory, func(i Item) bool { return gone(&i.Owner) }) {
		return b
	}
	next := *b
	next.facts = slices.DeleteFunc(slices.Clone(b.facts), func(f fact) bool { return gone(f.owner) })
	next.Inventory = slices.DeleteFunc(slices.Clone(b.Inventory), func(i Item) bool { return gone(&i.Owner) })
	next.total()
	return &next
}

// dropped returns a book without the owner's fact. What the inventory says of
// the owner stays: that is the node's word.
func (b *book) dropped(owner *Owner) *book {
	at := b.find(owner)
	if at < 0 {
		return b
	}
	next := *b
	next.facts = slices.Delete(slices.Clone(b.facts), at, at+1)
	next.total()
	return &next
}

// empty is whether the book can be forgotten.
func (b *book) empty() bool { return !b.reported && len(b.facts) == 0 }
