package explore

import (
	"encoding/binary"
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// canon writes a world down so that two worlds look the same if they differ only by
// a renaming of nodes, epoch ids, snapshots or contents. A node is written as its
// place in an order, everything else as the number of its first appearance; the
// meaning of a name follows its first appearance.
//
// State that is never read again is left out; each such place says why. Writing
// down too much costs states, leaving out too much would hide some: the tests
// compare with a run that writes down everything.
type canon struct {
	b []byte
	w *World
	// ahead says what may still happen to the world.
	ahead horizon
	order [maxNodes]uint8 // the node at each place
	place [maxNodes]uint8 // the place of each node, from 1

	epochs   []lineage.Epoch
	points   []lineage.Point
	contents []*content
	lineages []lineage.Lineage
	best     []byte
	signs    [maxNodes]uint64
	streams  []uint8
	kept     []ownership.Hold
}

// horizon says what may still happen in a run. Differences that matter only for
// other events need not be told apart.
type horizon struct {
	backups bool   // a restored backup, or a copy that goes: promises and numbers may go back
	restore bool   // earlier versions of the record may come back
	time    bool   // clocks run
	renames bool   // nodes are interchangeable
	newest  uint64 // the highest sequence number that a snapshot can get
}

func (c *canon) n(v uint64) {
	if v < 255 {
		c.b = append(c.b, byte(v))
		return
	}
	c.b = binary.LittleEndian.AppendUint64(append(c.b, 255), v)
}

func (c *canon) flags(v ...bool) {
	var bits uint64
	for i, f := range v {
		if f {
			bits |= 1 << i
		}
	}
	c.n(bits)
}

// node writes a name: zero for none.
func (c *canon) node(name string) {
	if i := indexOf(name); i >= 0 {
		c.n(uint64(c.place[i]))
		return
	}
	c.n(0)
}

// span writes a duration, cut at the limit beyond which it does not matter.
func (c *canon) span(d, limit time.Duration) {
	if c.ahead.time {
		c.n(uint64(min(d, limit) / time.Second))
	}
}

// deadline writes how far away t is; all deadlines that have passed are alike.
func (c *canon) deadline(t time.Time) {
	if t.IsZero() {
		c.n(0)
		return
	}
	c.n(1 + uint64(max(0, t.Sub(c.w.clock()))/time.Second))
}

func (c *canon) epoch(e lineage.Epoch) {
	if e.IsZero() {
		c.n(0)
		return
	}
	i := slices.Index(c.epochs, e)
	if i >= 0 {
		c.n(uint64(i) + 1)
		return
	}
	c.epochs = append(c.epochs, e)
	c.n(uint64(len(c.epochs)))
	c.n(e.Number) // its order among the others
}

// point writes a snapshot's name and, the first time, its content when it was
// taken.
func (c *canon) point(p lineage.Point) {
	if p.IsZero() {
		c.n(0)
		return
	}
	i := slices.Index(c.points, p)
	if i >= 0 {
		c.n(uint64(i) + 1)
		return
	}
	c.points = append(c.points, p)
	c.n(uint64(len(c.points)))
	c.epoch(p.Epoch)
	c.n(p.Seq)
	held, _ := c.w.truth.data(p)
	c.content(held)
}

// content writes, the first time, the content that it was made from, so that equal
// numbers mean equal histories.
func (c *canon) content(v *content) {
	if v == nil {
		c.n(0)
		return
	}
	i := slices.Index(c.contents, v)
	if i < 0 {
		c.content(v.parent)
		c.n(uint64(v.size))
		c.contents = append(c.contents, v)
		i = len(c.contents) - 1
	}
	c.n(uint64(i) + 1)
}

// lineage is compared by value: shared memory is no state.
func (c *canon) lineage(v lineage.Lineage) {
	for i, l := range c.lineages {
		if len(l) == len(v) && (len(v) == 0 || &l[0] == &v[0] || slices.Equal(l, v)) {
			c.n(uint64(i) + 1)
			return
		}
	}
	c.lineages = append(c.lineages, v)
	c.n(uint64(len(c.lineages)))
	c.n(uint64(len(v)))
	for i := range v {
		c.epoch(v[i].Epoch)
		c.point(v[i].From)
	}
}
