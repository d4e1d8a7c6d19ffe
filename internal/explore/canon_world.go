package explore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"berth.dev/berth/internal/ownership"
)

// fingerprint is FNV-1a with 128 bits: the same in every run, so that an
// exploration visits and samples the same states every time. Among 10^9 states
// two have the same with a probability of 10^-21.
func fingerprint(b []byte) (key [2]uint64) {
	h := fnv.New128a()
	_, _ = h.Write(b) // never fails
	var sum [16]byte
	h.Sum(sum[:0])
	return [2]uint64{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])}
}

// key is a fingerprint of everything that decides how the world can go on, the same
// for all worlds that differ by a renaming. Nodes are ordered by their sign; of
// those with equal signs every order is tried, and the least description taken.
func (c *canon) key(w *World) [2]uint64 {
	c.w = w
	nodes := w.cfg.Nodes
	for i := range nodes {
		c.order[i] = uint8(i)
		c.signs[i] = c.sign(i)
	}
	if !c.ahead.renames {
		c.write()
		return fingerprint(c.b)
	}
	slices.SortFunc(c.order[:nodes], func(i, j uint8) int { return cmp.Compare(c.signs[i], c.signs[j]) })
	c.best = c.best[:0]
	c.permute(0)
	return fingerprint(c.best)
}

// permute tries every order of the places from k on that keeps the signs sorted.
func (c *canon) permute(k int) {
	nodes := c.w.cfg.Nodes
	if k == nodes {
		c.write()
		if len(c.best) == 0 || bytes.Compare(c.b, c.best) < 0 {
			c.b, c.best = c.best, c.b
		}
		return
	}
	for j := k; j < nodes && c.signs[c.order[j]] == c.signs[c.order[k]]; j++ {
		c.order[k], c.order[j] = c.order[j], c.order[k]
		c.permute(k + 1)
		c.order[k], c.order[j] = c.order[j], c.order[k]
	}
}

// sign tells nodes apart by properties that need no name. Nodes with different
// signs are different; those with equal signs may be.
func (c *canon) sign(i int) uint64 {
	w, n := c.w, &c.w.nodes[i]
	h := uint64(14695981039346656037)
	mix := func(v uint64) { h = (h ^ v) * 1099511628211 }
	bit := func(v bool) {
		h *= 3
		if v {
			h++
		}
	}
	for _, v := range [...]bool{n.copy.Exists, n.copy.Dirty, n.up, n.paused, n.mounted, n.stopped, n.wanted, n.pending != nil} {
		bit(v)
	}
	if n.pending != nil {
		mix(uint64(n.pending.action.Verb))
	}
	mix(uint64(w.disk.links[i]))
	mix(n.copy.Promise.Epoch.Number)
	mix(uint64(len(n.copy.Points)))
	tip := n.copy.Tip()
	mix(tip.Seq<<32 | tip.Epoch.Number)
	mix(uint64(n.head.length()))
	if v := w.server.current.volume; v != nil {
		e, _ := v.Replica(names[i])
		mix(uint64(e.State)<<32 | e.Point.Seq)
		bit(v.Primary.Phase.Open() && v.Primary.Node == names[i])
	}
	coming := uint64(0)
	for k := range w.streams {
		if w.streams[k].to == i {
			coming += 1 << (8 * w.streams[k].header.Target.Seq)
		}
	}
	mix(coming)
	return h
}

// write describes the world with its nodes in c.order.
func (c *canon) write() {
	w := c.w
	c.b, c.epochs, c.points, c.contents, c.lineages = c.b[:0], c.epochs[:0], c.points[:0], c.contents[:0], c.lineages[:0]
	for at, i := range c.order[:w.cfg.Nodes] {
		c.place[i] = uint8(at) + 1
	}
	c.volume(w.server.current.volume)
	for v := w.server.current.before; c.ahead.restore && v != nil; v = v.before {
		c.volume(v.volume)
	}
	for _, i := range c.order[:w.cfg.Nodes] {
		c.machine(int(i))
	}
	for k := range w.ctl {
		c.controller(&w.ctl[k])
	}
	c.inFlight()
	c.target()
	c.links()
	c.truth()
}

func (c *canon) controller(ctl *controller) {
	c.pending(ctl.pending)
	if !c.ahead.time {
		return
	}
	for _, i := range c.order[:c.w.cfg.Nodes] {
		// The relation of these two decides which nodes make a majority.
		c.span(ctl.lapsed[i], 1<<62)
		c.span(ctl.steady[i], 1<<62)
		c.span(ctl.lostFor[i], ownership.RebuildDelay)
	}
	c.span(ctl.suspect, ownership.Settle)
	c.span(ctl.watching, ownership.WatchFirst)
}

// inFlight writes the streams. They may arrive in any order, so their order is no
// state.
func (c *canon) inFlight() {
	streams := c.w.streams
	c.streams = c.streams[:0]
	for k := range streams {
		c.streams = append(c.streams, uint8(k))
	}
	slices.SortFunc(c.streams, func(i, j uint8) int {
		a, b := &streams[i], &streams[j]
		return cmp.Or(cmp.Compare(c.place[a.to], c.place[b.to]), cmp.Compare(c.place[a.from], c.place[b.from]),
			cmp.Compare(a.header.Target.Seq, b.header.Target.Seq), cmp.Compare(a.header.Target.Epoch.Number, b.header.Target.Epoch.Number),
			cmp.Compare(a.header.Base.Seq, b.header.Base.Seq), cmp.Compare(a.header.Promise.Epoch.Number, b.header.Promise.Epoch.Number))
	})
	c.n(uint64(len(streams)))
	for _, k := range c.streams {
		s := &streams[k]
		c.n(uint64(c.place[s.to]))
		if c.ahead.time || c.ahead.backups { // else its source holds the target already
			c.n(uint64(c.place[s.from]))
		}
		c.promise(&s.header.Promise)
		c.point(s.header.Base)
		c.point(s.header.Target)
		c.n(uint64(s.header.Size))
		c.content(s.base)
		c.content(s.target)
	}
}

func (c *canon) reservation(k ownership.Key) {
	c.node(k.Node)
	c.epoch(k.Epoch)
	c.flags(k.Fence)
}

func (c *canon) links() {
	for _, i := range c.order[:c.w.cfg.Nodes] {
		cut := c.w.cut[i]
		c.n(uint64(cut >> maxNodes))
		for _, j := range c.order[:c.w.cfg.Nodes] {
			c.flags(cut&(1<<j) != 0)
		}
	}
	for i := maxNodes; i < endpoints; i++ {
		c.n(uint64(c.w.cut[i] >> maxNodes))
	}
}

// truth writes the values that the checks compare with.
func (c *canon) truth() {
	t := &c.w.truth
	c.flags(c.w.server.down, t.open, t.restored)
	c.nodes(t.forsaken)
	c.content(t.last)
	c.content(t.recalled)
	c.epoch(t.epoch)
	if !c.w.cfg.Kind.Traits().Reserves {
		return // the rest is about the disk's log
	}
	c.n(uint64(len(t.log)))
	for _, e := range t.log {
		c.epoch(e)
	}
	c.n(uint64(len(t.fenced)))
	for _, e := range t.fenced {
		c.epoch(e)
	}
}
