package explore

import (
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// checkMount judges a mount: its epoch belongs to this node alone, and if it is the
// record's, the data has all acknowledged writes.
func (w copyJudge) checkMount(i int, p *pending) {
	n, t := &w.nodes[i], &w.truth
	if n.copy.Promise.Epoch != n.copy.Opened || n.copy.Promise.Primary != names[i] {
		w.fail("one writer: %s mounts without an epoch of its own", names[i])
	}
	for j := range w.nodes {
		if o := &w.nodes[j]; j != i && o.mounted && o.up && o.copy.Opened == n.copy.Opened {
			w.fail("one writer: %s and %s are both mounted in epoch %v", names[i], names[j], n.copy.Opened)
		}
	}
	if n.copy.Exists && n.head.extent() > n.copy.Size {
		w.fail("size: %s mounts a filesystem of %d on a copy of %d", names[i], n.head.extent(), n.copy.Size)
	}
	v := w.server.current.volume.On(names[i])
	if v == nil || w.superseded(i, v, p.read) {
		return // nothing it writes will count
	}
	if w.cfg.Kind.Traits().Data {
		switch {
		case n.head == t.last:
		case t.restored && n.head.includes(t.last),
			t.recalled != nil && n.head.includes(t.recalled): // decided before the backup came
			t.last = n.head
		case t.restored && !p.ignored && slices.Contains(t.fenced, n.copy.Opened):
			t.last = n.head // the backup forgot the fence, and no node in reach knows of a later epoch
		case n.head.includes(t.last):
			w.fail("lineage: %s mounts writes that are not part of the volume", names[i])
		default:
			w.fail("lost writes: %s mounts in epoch %v without writes that were acknowledged", names[i], n.copy.Opened)
		}
	}
	t.epoch, t.open = n.copy.Opened, true
}

// superseded tells whether the epoch in which i mounts is over. A record from a
// backup that has not heard of the epoch yet does not end it. One from before a fence undoes the
// fence for every node that has read it, and not for one that mounts late, from what it read before.
func (w copyJudge) superseded(i int, v *ownership.Volume, read *version) bool {
	e := w.nodes[i].copy.Opened
	if v.Epoch == e && (read.rv >= w.truth.backup || !slices.Contains(w.truth.fenced, e)) {
		return !v.Primary.Phase.Open() || v.Primary.Node != names[i]
	}
	return slices.Contains(w.truth.fenced, e) || knows(v.Lineage, e) || v.Epoch.Number >= e.Number
}

// checkDiskWrite puts a write before the shared disk. While it is reserved, the disk
// refuses every session but the holder. The writes that it accepts must be in the order of
// epochs.
func (w diskJudge) checkDiskWrite(i int, e lineage.Epoch) {
	t := &w.truth
	if !w.disk.accepts(i) {
		return
	}
	for _, f := range t.fenced {
		if f == e && !w.helpless() {
			w.fail("fence: the disk accepted a write of fenced epoch %v", e)
		}
	}
	if e == wiped && t.begun && !w.helpless() {
		w.fail("earlier: the disk accepted a write of a volume that was there before")
	}
	if w.cfg.Many { // in any order
		if slices.Contains(t.released, e) {
			w.fail("released: the disk accepted a write of epoch %v, which is over", e)
		}
		return
	}
	if len(t.log) > 0 && t.log[len(t.log)-1] == e {
		return
	}
	for _, o := range t.log {
		if o == e || o.Number > e.Number {
			w.fail("interleaved: epoch %v writes again after epoch %v", e, t.log[len(t.log)-1])
		}
	}
	t.log = append(slices.Clip(t.log), e)
}

// checkApply judges a stream that a receiver accepts.
func (w copyJudge) checkApply(s *stream) {
	n := &w.nodes[s.to]
	if s.target.extent() > n.copy.Size {
		w.fail("size: %s, with a copy of %d, applied a filesystem of %d", names[s.to], n.copy.Size, s.target.extent())
	}
	if s.header.Base.IsZero() {
		w.checkDiscard(s.to, s.target)
		w.checkEpoch(s)
		return
	}
	if n.head != s.base {
		w.fail("divergent stream: %s applied %v to something that is not its base", names[s.to], s.header.Target)
	}
	w.checkEpoch(s)
}

// checkEpoch: of a sender whose epoch is over, a receiver takes what its own promise has, and nothing else.
func (w copyJudge) checkEpoch(s *stream) {
	p := &w.nodes[s.to].copy.Promise
	if s.header.Promise.Epoch.Number < p.Epoch.Number && !p.Lineage.Contains(s.header.Target) {
		w.fail("divergent stream: %s took data of an older epoch than it promised", names[s.to])
	}
}

// checkGrow: a copy never becomes smaller than it was.
func (w copyJudge) checkGrow(i int, size int64) {
	if n := &w.nodes[i]; size < n.copy.Size {
		w.fail("size: %s makes its copy of %d smaller, %d", names[i], n.copy.Size, size)
	}
}

// checkDiscard judges the loss of live data on a node: data that is not in the new
// content must have been put aside.
func (w copyJudge) checkDiscard(i int, now *content) {
	n := &w.nodes[i]
	if n.head == nil || now.includes(n.head) {
		return
	}
	for _, b := range n.branches {
		if b.includes(n.head) {
			return
		}
	}
	w.fail("destroyed: %s rolled back over data that was not put aside", names[i])
}

// checkDestroy judges the end of a copy: enough others must hold all that it
// holds of the volume, apart from those that broke meanwhile.
func (w copyJudge) checkDestroy(i int, p *pending) {
	n := &w.nodes[i]
	v := w.server.current.volume
	if n.mounted {
		w.fail("last copies: %s destroyed a mounted copy", names[i])
	}
	if !w.cfg.Kind.Traits().Data || v != nil && v.Deleting {
		return
	}
	mine, factor := w.worth(i), p.factor
	if v != nil {
		factor = min(factor, v.Factor) // fewer may be wanted by now than when it was decided
	}
	others := 0
	for j := 0; j < w.cfg.Nodes; j++ {
		o := &w.nodes[j]
		if j == i {
			continue
		}
		if o.wrecked != p.wrecked[j] || o.copy.Exists && !o.copy.Condemned && w.worth(j) >= mine {
			others++
		}
	}
	if mine > 0 && others < factor {
		w.fail("last copies: %s destroyed its copy with %d others for a factor of %d", names[i], others, factor)
	}
	if p.read.volume == nil {
		w.fail("last copies: %s destroyed its copy because the record was missing", names[i])
	}
	if n.head != nil && !w.kept(i) {
		w.fail("destroyed: %s destroyed writes that are neither in the volume nor in a branch or another copy", names[i])
	}
}

// kept tells whether all that the node's copy holds is also in the volume, in a branch, or in the
// copy of another node.
func (w copyJudge) kept(i int) bool {
	head := w.nodes[i].head
	if w.truth.last.includes(head) {
		return true
	}
	for j := range w.nodes {
		if o := &w.nodes[j]; j != i && o.copy.Exists && o.head.includes(head) || slices.ContainsFunc(o.branches, func(b *content) bool { return b.includes(head) }) {
			return true
		}
	}
	return false
}

// worth is how much of the volume the node's copy holds.
func (w copyJudge) worth(i int) uint32 {
	n := &w.nodes[i]
	best := uint32(0)
	for _, c := range n.data {
		best = max(best, w.truth.last.shared(c))
	}
	return max(best, w.truth.last.shared(n.head))
}

// outlived tells whether a backup names a recovery point that was not the last
// one, and node i has all of it in a newer one: a decision to drop it may have
// been made before the backup came.
func (w copyJudge) outlived(i int, p lineage.Point) bool {
	n := &w.nodes[i]
	c, ok := w.truth.data(p)
	newest := n.data[len(n.data)-1]
	return w.truth.restored && ok && newest != c && newest.includes(c)
}

// checkDrop: retention never drops the newest snapshot, nor the recovery point.
func (w copyJudge) checkDrop(i int, points []lineage.Point) {
	n := &w.nodes[i]
	v := w.server.current.volume
	for _, p := range points {
		if p == n.copy.Tip() {
			w.fail("retention: %s dropped its newest snapshot", names[i])
		}
		if v != nil && !v.Primary.Phase.Open() && p == v.RecoveryPoint && w.partOfVolume(p) && !w.outlived(i, p) {
			w.fail("retention: %s dropped the recovery point", names[i])
		}
	}
}

// checkShared judges the decision to drop snapshots: none is all that another node has in common, by the record that was
// read. Of a report that comes later the node could not know, and that costs a copy in full.
func (w copyJudge) checkShared(i int, a *ownership.Action, v *ownership.Volume) {
	if a.Verb != ownership.Drop || v == nil {
		return
	}
	for j := 0; j < w.cfg.Nodes; j++ {
		e, ok := v.Replica(names[j])
		if j == i || !ok || !steps(stateSteps, ownership.Ready, e.State) || !w.nodes[j].copy.Exists {
			continue
		}
		o := &w.nodes[j].copy
		common := lineage.Common(w.nodes[i].copy.Points, o.Points)
		for _, p := range a.Points {
			if p == common && o.Tip() == e.Point && o.Tip() == p {
				w.fail("retention: %s dropped %v, all that it shared with %s", names[i], p, names[j])
			}
		}
	}
}

// checkHeld: a snapshot that a node has promised to keep for another is not dropped.
func (w copyJudge) checkHeld(i int, a *ownership.Action) {
	if a.Verb != ownership.Drop {
		return
	}
	for _, h := range w.nodes[i].copy.Holds {
		if h.Until.After(w.clock()) && slices.Contains(a.Points, h.Point) {
			w.fail("retention: %s drops %v, which it keeps for %s", names[i], h.Point, h.For)
		}
	}
}

// checkUnstaged: when unmounting succeeds, the last writes are in a snapshot.
func (w copyJudge) checkUnstaged(i int) {
	n := &w.nodes[i]
	if n.mounted || n.copy.Dirty && w.cfg.Kind.Traits().Data {
		w.fail("unstage: %s reported success with writes in no snapshot", names[i])
	}
	v := w.server.current.volume.On(names[i])
	if v != nil && v.Primary.Node == names[i] && v.Primary.Phase.Open() && v.Epoch == n.copy.Opened && !w.rules.Conduct.CachedReads {
		w.fail("unstage: %s reported success and still owns epoch %v", names[i], v.Epoch)
	}
}
