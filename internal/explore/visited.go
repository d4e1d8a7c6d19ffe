package explore

import "sync"

// visited remembers the states that the search went on from, each with the budget
// left. It is split so that workers rarely wait for each other.
type visited struct{ shards [256]shard }

type shard struct {
	mu     sync.Mutex
	slots  []slot // open addressing; a power of two
	used   int
	states int
}

// slot is one visit. A state has several if its budgets do not cover each other.
// Of the key 80 bits are kept: 64 here, 8 above the budget and 8 in the choice
// of the shard.
type slot struct {
	key  uint64
	left budget // with the tops set: never zero
}

const budgetBits = 4 * len(counted)

func newSlot(key [2]uint64, left budget) slot {
	return slot{key: key[1], left: left | tops | budget(key[0])<<budgetBits}
}

func (s slot) same(o slot) bool { return s.key == o.key && s.left>>budgetBits == o.left>>budgetBits }

func (s slot) budget() budget { return s.left & (1<<budgetBits - 1) &^ tops }

// enter tells whether the search should go on from the state: not if it has done so
// with a budget that covers this one. first says that the state is new.
func (v *visited) enter(key [2]uint64, left budget) (enter, first bool) {
	s := &v.shards[key[0]>>56]
	s.mu.Lock()
	defer s.mu.Unlock()
	if 4*(s.used+1) > 3*len(s.slots) {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	fresh, visit := true, newSlot(key, left)
	at := key[1] & mask
	for ; s.slots[at].left != 0; at = (at + 1) & mask {
		if !s.slots[at].same(visit) {
			continue
		}
		fresh = false
		old := s.slots[at].budget()
		if old.covers(left) {
			return false, false
		}
		if left.covers(old) {
			s.slots[at] = visit
			return true, false
		}
	}
	s.slots[at] = visit
	s.used++
	if fresh {
		s.states++
	}
	return true, fresh
}

func (s *shard) grow() {
	old := s.slots
	s.slots = make([]slot, max(64, 2*len(old)))
	mask := uint64(len(s.slots) - 1)
	for i := range old {
		if old[i].left == 0 {
			continue
		}
		at := old[i].key & mask
		for s.slots[at].left != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = old[i]
	}
}

// states counts the different states.
func (v *visited) states() (n int) {
	for i := range v.shards {
		s := &v.shards[i]
		s.mu.Lock()
		n += s.states
		s.mu.Unlock()
	}
	return n
}
