package explore

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// encoder writes a world down so that equal worlds look equal: no pointers, no
// counters that only tell how the world was reached.
type encoder struct{ b []byte }

func (e *encoder) n(v uint64)        { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) s(v string)        { e.n(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) t(v time.Time)     { e.n(uint64(v.Unix())) }
func (e *encoder) d(v time.Duration) { e.n(uint64(v)) }

func (e *encoder) flags(v ...bool) {
	var bits uint64
	for i, f := range v {
		if f {
			bits |= 1 << i
		}
	}
	e.n(bits)
}

func (e *encoder) epoch(v lineage.Epoch) { e.n(v.Number); e.s(v.ID) }
func (e *encoder) point(v lineage.Point) { e.epoch(v.Epoch); e.n(v.Seq) }
func (e *encoder) key(v ownership.Key)   { e.s(v.Node); e.epoch(v.Epoch); e.flags(v.Fence) }

func (e *encoder) lineage(v lineage.Lineage) {
	e.n(uint64(len(v)))
	for _, b := range v {
		e.epoch(b.Epoch)
		e.point(b.From)
	}
}

func (e *encoder) volume(v *ownership.Volume) {
	if v == nil {
		e.n(0)
		return
	}
	e.n(uint64(v.Factor) + 1)
	e.epoch(v.Epoch)
	e.s(v.Primary.Node + "/" + v.Primary.Boot)
	e.n(uint64(v.Primary.Phase))
	e.point(v.RecoveryPoint)
	e.flags(v.Clean, v.Deleting)
	e.lineage(v.Lineage)
	e.n(uint64(len(v.Losses)))
	e.s(v.FenceRequest.Executor)
	e.epoch(v.FenceRequest.Epoch)
	e.point(v.Failover.Approved)
	e.t(v.ExpireAt)
	for _, r := range v.Replicas {
		e.s(r.Node)
		e.n(uint64(r.State))
		e.point(r.Point)
		e.epoch(r.Unstaged)
		e.epoch(r.Fenced)
	}
}

func (e *encoder) promise(p *ownership.Promise) {
	e.epoch(p.Epoch)
	e.s(p.Primary + "/" + p.Boot)
	e.lineage(p.Lineage)
	e.n(uint64(len(p.Losses)))
}

func (e *encoder) node(w *World, n *node) {
	c := &n.copy
	e.flags(c.Exists, c.Dirty, c.Condemned, c.Quarantined, n.tainted, n.up, n.paused, n.agent, n.mounted,
		n.stopped, n.woke, n.wanted)
	e.promise(&c.Promise)
	e.epoch(c.Opened)
	e.epoch(c.Closed)
	e.point(c.Preserved)
	e.t(c.DestroyAt)
	for _, h := range c.Holds {
		e.s(h.For)
		e.point(h.Point)
		e.t(h.Until)
	}
	for i, p := range c.Points {
		e.point(p)
		e.n(n.data[i].sum())
	}
	e.n(n.head.sum())
	e.n(uint64(len(n.branches))<<24 | uint64(n.boot)<<16 | uint64(n.poweroff)<<8 | uint64(n.wrecked)<<4 | uint64(n.leased))
	e.d(n.sinceRenewal)
	e.d(n.sinceKubelet)
	e.pending(w, &n.pending)
}

func (e *encoder) pending(w *World, p *pending) {
	if !p.active {
		e.n(0)
		return
	}
	a := &p.action
	e.n(uint64(a.Verb) + 1)
	e.flags(p.read == w.server.current, p.ignored, p.brake)
	e.volume(a.Next)
	e.promise(&a.Promise)
	e.s(a.From)
	e.point(a.Base)
	e.point(a.To)
	for _, d := range a.Points {
		e.point(d)
	}
	e.key(a.Key)
	e.key(a.Expect)
	e.t(a.Until)
}

// fingerprint is FNV-1a with 128 bits: the same in every run, so that an
// exploration visits and samples the same states every time.
func fingerprint(b []byte) (key [2]uint64) {
	h := fnv.New128a()
	_, _ = h.Write(b) // never fails
	sum := h.Sum(nil)
	return [2]uint64{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])}
}

// key is a fingerprint of everything that decides how the world can go on.
func (w *World) key(e *encoder, versions bool) [2]uint64 {
	e.b = e.b[:0]
	e.volume(w.server.current.volume)
	for v := w.server.current.before; versions && v != nil; v = v.before {
		e.volume(v.volume)
	}
	for i := 0; i < w.cfg.Nodes; i++ {
		e.node(w, &w.nodes[i])
	}
	for c := range w.ctl {
		e.pending(w, &w.ctl[c].pending)
		e.point(w.ctl[c].blocked)
		for i := range w.ctl[c].lapsed {
			e.d(w.ctl[c].lapsed[i])
			e.d(w.ctl[c].steady[i])
			e.d(w.ctl[c].lostFor[i])
		}
	}
	for i := range w.streams {
		s := &w.streams[i]
		e.n(uint64(s.to))
		e.promise(&s.header.Promise)
		e.point(s.header.Base)
		e.point(s.header.Target)
	}
	e.key(w.disk)
	for i := range w.cut {
		e.n(uint64(w.cut[i]))
	}
	e.flags(w.server.down, w.truth.open, w.truth.restored)
	e.n(w.truth.last.sum())
	e.n(w.truth.recalled.sum())
	e.epoch(w.truth.epoch)
	e.n(uint64(len(w.truth.log)))
	e.d(w.now)
	return fingerprint(e.b)
}
