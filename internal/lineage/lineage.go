package lineage

import (
	"math"
	"slices"
)

// MaxBranches bounds the epochs a Lineage remembers. A replica whose newest
// snapshot is older than that is treated as unrelated and copied in full, which
// costs time but never data: epochs in which nothing was written are forgotten first,
// or a pod that fails to begin again and again would leave no replica that counts.
const MaxBranches = 32

// Branch says where an epoch began. From is zero for the first epoch, and for
// volumes whose replicas hold no data of their own (attachments of one disk).
type Branch struct {
	Epoch Epoch
	From  Point
}

// Lineage lists the epochs of a volume in the order in which they were opened,
// the current one last. Abandoned epochs stay in the list: they are known, but
// not on the path from the head to the root.
type Lineage []Branch

// Head is the current epoch, zero if there is none.
func (l Lineage) Head() Epoch {
	if len(l) == 0 {
		return Epoch{}
	}
	return l[len(l)-1].Epoch
}

// Until returns the history up to an epoch, and all of it if it does not have that one.
func (l Lineage) Until(e Epoch) Lineage {
	for i := range l {
		if l[i].Epoch == e {
			return l[: i+1 : i+1]
		}
	}
	return l
}

// Branch returns where e began.
func (l Lineage) Branch(e Epoch) (Branch, bool) {
	for _, b := range slices.Backward(l) {
		if b.Epoch == e {
			return b, true
		}
	}
	return Branch{}, false
}

// After returns the branch opened next after e.
func (l Lineage) After(e Epoch) (Branch, bool) {
	for i := len(l) - 2; i >= 0; i-- {
		if l[i].Epoch == e {
			return l[i+1], true
		}
	}
	return Branch{}, false
}

// Contains tells whether p lies on the path from the head to the root. It walks
// the path backwards: an epoch counts up to the point where the next epoch of
// the path left it, and an epoch that the path jumps over does not count at all. The
// first snapshot of an epoch has a higher number than the point where the epoch began, so that the
// zero point lies in no lineage.
func (l Lineage) Contains(p Point) bool {
	epoch, limit := l.Head(), uint64(math.MaxUint64)
	for i := len(l) - 1; i >= 0; i-- {
		b := &l[i]
		if b.Epoch != epoch {
			continue
		}
		if b.Epoch == p.Epoch {
			return b.From.Seq < p.Seq && p.Seq <= limit
		}
		epoch, limit = b.From.Epoch, b.From.Seq
	}
	return false
}

// Extend returns the lineage with b as its head. The receiver is not changed.
// Beyond MaxBranches it forgets the oldest epoch that is not on the path from the head to the
// root, and the oldest of all only if there is no other. The epoch before the head stays.
func (l Lineage) Extend(b Branch) Lineage {
	next := make(Lineage, 0, len(l)+1)
	next = append(append(next, l...), b)
	for len(next) > MaxBranches {
		at := next.idle()
		next = slices.Delete(next, at, at+1)
	}
	return next
}

// idle is the place of the oldest epoch that is not on the path from the head to the root, 0 if there is none
// but the last.
func (l Lineage) idle() int {
	at, epoch := 0, l.Head()
	for i, b := range slices.Backward(l) {
		switch {
		case b.Epoch == epoch:
			epoch = b.From.Epoch
		case i < len(l)-2:
			at = i
		}
	}
	return at
}
