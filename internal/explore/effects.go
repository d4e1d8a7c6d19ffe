package explore

import (
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// act carries out a decision. Local effects happen under the volume's lock, so
// nothing local has changed since the decision; everything else may have.
func (w agents) act(i int, p *pending) {
	n, a := &w.nodes[i], &p.action
	w.tell(i, "carries out", *a)
	switch a.Verb {
	case ownership.Record:
		w.write(i, p)
	case ownership.Persist:
		n.copy.Promise = a.Promise
	case ownership.Open:
		n.copy.Opened = a.Promise.Epoch
		if a.Key != (ownership.Key{}) {
			w.register(i, a.Key)
		}
	case ownership.Close:
		n.copy.Closed = a.Promise.Epoch
	case ownership.Grow:
		w.grow(i, a.Size)
	case ownership.Pull:
		w.wire().send(i, a)
	case ownership.Preserve:
		n.branches = append(slices.Clip(n.branches), n.head)
		n.copy.Preserved = n.copy.Tip()
	case ownership.RollBack:
		w.rollBack(i, a.To)
	case ownership.Snapshot:
		w.snapshot(i, a.To)
	case ownership.Drop:
		w.dropPoints(i, a.Points)
	case ownership.Register, ownership.Reserve, ownership.Attach, ownership.Detach:
		w.diskStep(i, a)
	case ownership.Mount:
		w.mount(i, p)
	case ownership.Unmount:
		w.unmount(i)
	default:
		w.removeSteps(i, p)
	}
}

func (w agents) removeSteps(i int, p *pending) {
	n := &w.nodes[i]
	switch p.action.Verb {
	case ownership.Condemn:
		n.copy.Condemned, n.copy.Quarantined, n.copy.DestroyAt = true, false, p.action.Until
	case ownership.Reprieve:
		n.copy.Condemned, n.copy.Quarantined = false, false
	case ownership.Quarantine:
		if p.unread {
			w.fail("quarantine: %s quarantined its copy because it could not read the record", names[i])
		}
		n.copy.Quarantined, n.copy.DestroyAt = true, p.action.Until
	case ownership.Destroy:
		w.copyJudge().checkDestroy(i, p)
		n.copy, n.data, n.head = ownership.Copy{}, nil, nil
	}
}

// grow makes the copy larger, and the filesystem with it if it is mounted.
func (w agents) grow(i int, size int64) {
	n := &w.nodes[i]
	if n.refused = n.full; n.full {
		return
	}
	w.copyJudge().checkGrow(i, size)
	n.copy.Size = size
	w.extend(i)
}

// extend makes a mounted filesystem as large as its copy. That is a write.
func (w agents) extend(i int) {
	n := &w.nodes[i]
	if !n.mounted || !w.cfg.Kind.Traits().Data || n.head.extent() >= n.copy.Size {
		return
	}
	w.writes++
	old := n.head
	n.head, n.copy.Dirty = n.head.grown(w.writes, uint64(i)+3, n.copy.Size), true
	w.truth.wrote(n.copy.Opened, old, n.head)
}

func (w agents) rollBack(i int, to lineage.Point) {
	n := &w.nodes[i]
	for k, p := range n.copy.Points {
		if p != to {
			continue
		}
		w.copyJudge().checkDiscard(i, n.data[k])
		n.copy.Points, n.data = n.copy.Points[:k+1:k+1], n.data[:k+1:k+1]
		n.head, n.copy.Dirty = n.data[k], false
		return
	}
}

func (w agents) snapshot(i int, p lineage.Point) {
	n := &w.nodes[i]
	w.truth.name(w.World, p, n.head)
	n.copy.Points = append(slices.Clip(n.copy.Points), p)
	n.data = append(slices.Clip(n.data), n.head)
	n.copy.Dirty, n.sinceSnapshot = false, 0
}

func (w agents) dropPoints(i int, points []lineage.Point) {
	n := &w.nodes[i]
	var keep []lineage.Point
	var data []*content
next:
	for k, p := range n.copy.Points {
		for _, d := range points {
			if p == d {
				continue next
			}
		}
		keep, data = append(keep, p), append(data, n.data[k])
	}
	w.copyJudge().checkDrop(i, points)
	n.copy.Points, n.data = keep, data
}

func (w agents) mount(i int, p *pending) {
	n := &w.nodes[i]
	w.copyJudge().checkMount(i, p)
	w.diskJudge().checkClean(i, p.action.Check)
	w.truth.begun = w.truth.begun || w.cfg.Many
	n.mounted, n.stopped, n.served = true, false, n.wanted
	w.extend(i)
}

// unmount flushes what the disk accepts, and waits for the commands that are on their way.
func (w agents) unmount(i int) {
	n := &w.nodes[i]
	if !w.rules.Conduct.LeavesCommands {
		w.land(i)
	}
	n.mounted, n.stopped = false, true
	if !w.cfg.Kind.Traits().Reserves || w.disk.accepts(i) {
		n.copy.Flushed, w.truth.unclean = n.copy.Opened, false
	}
	if w.rules.Conduct.FreesReservation && w.disk.holds(i) {
		w.disk.free()
	}
}

// appWrite is the pod writing once, if it has the volume.
func (w agents) appWrite(i int) bool {
	n := &w.nodes[i]
	if !n.up || n.paused || !n.mounted {
		return false
	}
	w.writes++
	if w.cfg.Kind.Traits().Reserves {
		w.diskJudge().checkDiskWrite(i, n.copy.Opened)
		return true
	}
	old := n.head
	n.head, n.copy.Dirty = n.head.add(w.writes, uint64(i)+3), true
	w.truth.wrote(n.copy.Opened, old, n.head)
	return true
}

// write is the compare-and-swap on the record.
func (w *World) write(who int, p *pending) {
	if !w.linked(who, api) {
		return
	}
	if p.read.rv != w.server.current.rv && !w.rules.Conduct.BlindWrites {
		return // another process was faster; read again
	}
	sound := w.Violation == ""
	w.recordJudge().checkRecord(p)
	w.recordJudge().journal(who, p, sound && w.Violation != "")
	w.diskJudge().noteUse()
	w.diskJudge().noteFence(p)
	w.commit(p.action.Next)
}

func (w *World) commit(v *ownership.Volume) {
	w.server.current = &version{volume: v, rv: w.server.current.rv + 1, before: w.server.current}
	w.truth.revisions++
}

// send starts a stream from the peer as it is now.
func (w wire) send(i int, a *ownership.Action) {
	j := indexOf(a.From)
	if j < 0 || !w.answers(i, j) || len(w.streams) >= 4 {
		return
	}
	src := &w.nodes[j]
	if p := src.pending; p != nil && (p.action.Verb == ownership.Drop || p.action.Verb == ownership.RollBack) {
		return // its volume's lock is held, and the snapshot asked for may go
	}
	s := stream{from: j, to: i, header: ownership.Stream{Promise: src.copy.Promise, Base: a.Base, Target: a.To, Size: src.copy.Size}}
	for k, p := range src.copy.Points {
		if p == a.Base {
			s.base = src.data[k]
		}
		if p == a.To {
			s.target = src.data[k]
		}
	}
	if s.target == nil || !a.Base.IsZero() && s.base == nil {
		return
	}
	w.streams = append(slices.Clip(w.streams), s)
	w.holdFor(&s)
}

// holdFor keeps a stream's target at its source: the receiver will have it in
// common with the source, and nothing later.
func (w wire) holdFor(s *stream) {
	c := &w.nodes[s.from].copy
	c.Holds = withHold(c, ownership.Hold{For: names[s.to], Point: s.header.Target, Until: w.clock().Add(ownership.HoldFor)}, w.clock())
}

// underway tells whether the snapshot is on its way to node i already.
func (w wire) underway(i int, to lineage.Point) bool {
	for k := range w.streams {
		if w.streams[k].to == i && w.streams[k].header.Target == to {
			return true
		}
	}
	return false
}

// deliver hands stream k to its receiver, and keeps it for another time if again.
func (w wire) deliver(k int, again bool) bool {
	if k >= len(w.streams) {
		return false
	}
	s := w.streams[k]
	n := &w.nodes[s.to]
	if !w.runs(s.to) || n.pending != nil {
		return false
	}
	if !again {
		w.lose(k)
	}
	w.holdFor(&s)
	ok, why := w.rules.Receive(&n.copy, n.mounted, &s.header)
	w.tellStream(s, ok, why)
	if !ok {
		return true
	}
	w.copyJudge().checkApply(&s)
	n.copy = w.rules.Received(&n.copy, &s.header)
	if s.header.Base.IsZero() {
		n.data = nil
	}
	n.data = append(slices.Clip(n.data), s.target)
	n.head = s.target
	return true
}

func (w wire) lose(k int) {
	rest := make([]stream, 0, len(w.streams))
	rest = append(rest, w.streams[:k]...)
	w.streams = append(rest, w.streams[k+1:]...)
}
