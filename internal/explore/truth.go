package explore

import (
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// truth is the knowledge of the world that no process has: the writes acknowledged
// to the application, and the real content of every snapshot.
type truth struct {
	// last is everything acknowledged and not given up by a recorded loss, and
	// epoch the one in which it may grow.
	last *content
	// recalled is last as it was before a backup brought back more.
	recalled *content
	epoch    lineage.Epoch
	open     bool
	// named is the content of each snapshot when it was taken.
	named []namedPoint
	// issued are the epochs that takeovers opened.
	issued []lineage.Epoch
	// fenced are the epochs whose writer the record called fenced.
	fenced []lineage.Epoch
	// released are the epochs of a disk with several writers that the record called released.
	released []lineage.Epoch
	// begun: the disk was mounted, so that no earlier volume may write it.
	begun bool
	// cleared: the target has lost a reservation for several writers.
	cleared bool
	// The shared disk's write log, as far as it matters: the epochs in the order
	// in which they wrote.
	log []lineage.Epoch

	// unclean: the last mount of a shared disk has not ended with everything flushed.
	unclean bool
	// usedAt is when the volume last had an owner, or a pod that a controller saw.
	usedAt time.Duration

	// forsaken are the nodes whose attachment a controller has ended, since they were deleted, and whose entry is
	// still there: a bit each.
	forsaken uint8

	restored bool
	// backup is the version of the record as it came back from a backup.
	backup uint32
	// forgot: the target lost its reservations.
	forgot    bool
	revisions int
}

type namedPoint struct {
	point lineage.Point
	data  *content
}

func (t *truth) begin(e lineage.Epoch, p lineage.Point, c *content) {
	t.last, t.epoch = c, e
	t.issued = []lineage.Epoch{e}
	t.named = []namedPoint{{point: p, data: c}}
}

func (t *truth) name(w *World, p lineage.Point, c *content) {
	if old, ok := t.data(p); ok && old != c {
		w.fail("identity: snapshot %v names two different contents", p)
	}
	t.named = append(slices.Clip(t.named), namedPoint{point: p, data: c})
}

func (t *truth) data(p lineage.Point) (*content, bool) {
	for _, v := range slices.Backward(t.named) {
		if v.point == p {
			return v.data, true
		}
	}
	return nil, false
}

// recall takes in a backup from before a failover, whose recovery point is the old
// one: the writes that were given up are back, unless a node knows better.
func (t *truth) recall(v *ownership.Volume) {
	if c, ok := t.data(v.RecoveryPoint); ok && !v.Primary.Phase.Open() && v.Kind.Traits().Data && c.includes(t.last) {
		t.last, t.recalled = c, t.last
	}
}

// checkRepair judges a record that was mended. It may give up only the writes that
// a backup had brought back, and must say so.
func (w recordJudge) checkRepair(old, v *ownership.Volume) {
	t := &w.truth
	if !v.Kind.Traits().Data || t.recalled == nil || v.RecoveryPoint == old.RecoveryPoint {
		return
	}
	if c, ok := t.data(v.RecoveryPoint); !ok || c != t.recalled {
		return
	}
	if t.last != t.recalled && !recorded(old, v) {
		w.fail("lost writes: the mended record goes on from %v and forgets that writes were given up", v.RecoveryPoint)
	}
	t.last, t.recalled = t.recalled, nil
}

// wrote notes an acknowledged write. A writer whose epoch is over acknowledges
// writes too, but they go into its own copy and are not part of the volume any
// more.
func (t *truth) wrote(e lineage.Epoch, old, head *content) {
	if t.open && e == t.epoch && old == t.last {
		t.last = head
	}
}

// checkRecord judges a change of the record at the moment it is committed.
func (w recordJudge) checkRecord(p *pending) {
	old, v := w.server.current.volume, p.action.Next
	if old == nil {
		return
	}
	if w.cfg.Many {
		w.checkWriters(old, v)
	}
	if p.action.Reason == ownership.RecordBehind {
		w.checkRepair(old, v)
		return
	}
	w.checkEntries(old, v, p)
	w.diskJudge().checkAttachments(old, v, p)
	node := changing(old, v)
	old, v = old.On(node), v.On(node)
	if v.Epoch != old.Epoch {
		w.checkTakeover(old, v, p)
	} else if !steps(phaseSteps, old.Primary.Phase, v.Primary.Phase) {
		w.fail("chart: phase %v may not follow %v", v.Primary.Phase, old.Primary.Phase)
	}
	if v.FenceRequest != old.FenceRequest && v.FenceRequest != (ownership.FenceRequest{}) && p.brake {
		w.fail("brake: a standby was asked to shut out epoch %v while too many nodes looked lost", v.Epoch)
	}
	w.diskJudge().checkWord(old, v, p)
	if old.Primary.Phase.Open() && !v.Primary.Phase.Open() {
		w.truth.open = w.truth.open && v.Epoch != w.truth.epoch
	}
	if v.Primary.Phase == ownership.Fenced && old.Primary.Phase.Open() {
		w.checkFence(old, v, p)
	}
	if w.cfg.Many && v.Primary.Phase == ownership.Released && old.Primary.Phase.Open() {
		w.truth.released = append(slices.Clip(w.truth.released), old.Epoch)
	}
	if !v.Primary.Phase.Open() && (old.Primary.Phase.Open() || v.RecoveryPoint != old.RecoveryPoint) {
		w.checkRecoveryPoint(old, v, p)
	}
}

func (w recordJudge) checkEntries(old, v *ownership.Volume, p *pending) {
	for _, e := range old.Replicas {
		n, ok := v.Replica(e.Node)
		if at := uint8(1) << indexOf(e.Node); ok && n.State == ownership.Gone && e.State != n.State && p.deleted&at != 0 {
			w.truth.forsaken |= at
		}
		switch {
		case !ok && e.State != ownership.Gone:
			w.fail("chart: the entry of %s left the record from %v", e.Node, e.State)
		case !ok:
			w.diskJudge().checkLeak(e.Node)
		case ok && !steps(stateSteps, e.State, n.State):
			w.fail("chart: replica %s may not go from %v to %v", e.Node, e.State, n.State)
		}
		if epoch := v.On(e.Node).Epoch; n.Unstaged == epoch && e.Unstaged != epoch && !epoch.IsZero() {
			w.checkStopped(epoch, indexOf(e.Node))
		}
	}
}

// checkStopped: what a node says of an epoch that ended there is durable, and no pod has the volume any more.
func (w recordJudge) checkStopped(e lineage.Epoch, i int) {
	switch c := &w.nodes[i].copy; {
	case w.nodes[i].up && w.nodes[i].mounted && c.Opened == e:
		w.fail("stopped: %s says that it has stopped in epoch %v, which it has mounted", names[i], e)
	case c.Opened == e && !c.GaveUp(e):
		w.fail("stopped: %s says that it has stopped in epoch %v, and has not given it up", names[i], e)
	}
}

func (w recordJudge) checkTakeover(old, v *ownership.Volume, p *pending) {
	t := &w.truth
	if v.Epoch.Number <= old.Epoch.Number {
		w.fail("epoch: %v does not grow beyond %v", v.Epoch, old.Epoch)
	}
	if old.Primary.Phase.Open() {
		w.fail("one writer: epoch %v taken while %s owned %v", v.Epoch, old.Primary.Node, old.Epoch)
	}
	for _, e := range t.issued {
		if e == v.Epoch {
			w.fail("epoch: %v was issued before", e)
		}
	}
	t.issued = append(slices.Clip(t.issued), v.Epoch)
	if !v.Kind.Traits().Data || knows(v.Lineage, t.epoch) {
		return
	}
	c, _ := t.data(v.RecoveryPoint)
	if c == t.last {
		if t.restored && !p.ignored { // no node could know of the old epoch: its writes from now on are not the volume's
			t.open, t.epoch = false, v.Epoch
		}
		return
	}
	if n := len(v.Losses); n > 0 && t.restored && v.Losses[n-1].Kept == v.RecoveryPoint {
		t.last, t.open, t.epoch = c, false, v.Epoch // given up and recorded, before any node could know better
		return
	}
	if p.ignored || !t.restored {
		w.fail("lost writes: epoch %v goes on from %v although a reachable node knew of epoch %v", v.Epoch, v.RecoveryPoint, t.epoch)
	}
	t.last, t.open, t.epoch = c, false, v.Epoch
}

// checkRecoveryPoint compares the end of the epoch in the record with the
// acknowledged writes.
func (w recordJudge) checkRecoveryPoint(old, v *ownership.Volume, p *pending) {
	t := &w.truth
	if !v.Kind.Traits().Data || !knows(v.Lineage, t.epoch) || v.Deleting {
		return
	}
	c, ok := t.data(v.RecoveryPoint)
	switch {
	case !ok:
		w.fail("recovery point: snapshot %v was never taken", v.RecoveryPoint)
	case c == t.last:
	case t.restored && c.includes(t.last):
		t.last = c // the backup is from before a loss: the writes that were given up are back
	case !t.last.includes(c):
		w.fail("lineage: recovery point %v holds writes that are not part of the volume", v.RecoveryPoint)
	case t.restored && w.anyWrecked():
		t.last, t.open = c, false // the only copy that knew better than the backup is gone
	case !recorded(old, v):
		w.fail("lost writes: %v leaves out acknowledged writes and no loss is recorded", v.RecoveryPoint)
	case p.age > maxDataLoss && v.Failover.Approved != v.RecoveryPoint:
		w.fail("policy: going on from %v loses %v and nobody agreed", v.RecoveryPoint, p.age)
	case !v.Failover.Automatic && v.Failover.Approved != v.RecoveryPoint:
		w.fail("policy: automatic failover to %v of a manual volume", v.RecoveryPoint)
	default:
		t.last, t.open = c, false
	}
}

func (w recordJudge) anyWrecked() bool {
	for i := range w.nodes {
		if w.nodes[i].wrecked > 0 {
			return true
		}
	}
	return false
}

func recorded(old, v *ownership.Volume) bool {
	n := len(v.Losses)
	return n > 0 && v.Losses[n-1].Kept == v.RecoveryPoint && (n != len(old.Losses) || v.Losses[n-1] != old.Losses[n-1])
}

// checkFence asks the machine itself whether it can still write. A paused
// machine may wake and, until it looks at its lease, write into its own copy; a shared disk must refuse it.
func (w recordJudge) checkFence(old, v *ownership.Volume, p *pending) {
	i := indexOf(old.Primary.Node)
	if i < 0 {
		return
	}
	n := &w.nodes[i]
	if n.up && n.mounted && n.copy.Opened == old.Epoch {
		shared := v.Kind.Traits().Reserves
		if shared && w.disk.accepts(i) && !w.diskJudge().helpless() {
			w.fail("fence: %s is called fenced and the disk still accepts its writes of epoch %v", names[i], old.Epoch)
		}
		if !shared && !n.paused && !n.woke {
			w.fail("fence: %s is called fenced and still writes in epoch %v", names[i], old.Epoch)
		}
	}
	if p.brake {
		w.fail("brake: epoch %v was fenced while too many nodes looked lost", old.Epoch)
	}
	w.truth.fenced = append(slices.Clip(w.truth.fenced), old.Epoch)
}
