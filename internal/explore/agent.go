package explore

import (
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// agentStep lets node i's agent take one step: carry out its decision, or make one.
// Between the two anything may happen. The bits of stale say which answers a mutant
// remembers instead of asking.
func (w agents) agentStep(i int, stale uint8) bool {
	n := &w.nodes[i]
	if !w.runs(i) {
		return false
	}
	if p := n.pending; p != nil {
		n.pending = nil
		w.act(i, p)
		return true
	}
	w.scratch.verb = ownership.Nothing
	done := w.think(i, stale)
	if p := n.pending; p != nil && stale&atOnce != 0 {
		n.pending = nil
		w.act(i, p)
	}
	return done
}

// Bits of a step. backwards: nodes with later names are less loaded. atOnce: a
// decision is carried out with no event in between.
const (
	backwards = 64
	atOnce    = 128
)

func (w agents) think(i int, stale uint8) bool {
	n := &w.nodes[i]
	read, unread := &version{}, !w.linked(i, api)
	if !unread {
		read = w.read(stale)
	}
	f := w.nodeFacts(i, read, stale)
	f.Absent = read.volume == nil && !unread
	if v := read.volume.On(names[i]); v != nil && n.copy.Promise.Epoch == v.Epoch && (v.Primary.Node != names[i] || n.copy.GaveUp(v.Epoch)) {
		n.lapsed = false // what the copy keeps tells its earlier epochs from those that it may begin
	}
	f.Unstaging = !n.wanted && (n.mounted || n.stopped)
	answer, a := w.rules.Node.Next(f)
	if f.Wanted || f.Unstaging {
		w.tell(i, "answers the kubelet", answer)
	}
	if f.Unstaging && answer.Verb == ownership.Done {
		w.copyJudge().checkUnstaged(i)
		n.stopped = false
	}
	w.scratch.verb = a.Verb
	w.diskJudge().checkGivesUp(i, &a)
	w.diskJudge().checkGoesOn(i, &a, read.volume)
	w.diskJudge().checkShutsOut(i, &a, read.volume)
	w.diskJudge().checkSaysFenced(i, &a)
	w.copyJudge().checkHeld(i, &a)
	w.copyJudge().checkShared(i, &a, read.volume)
	if a.Verb <= ownership.Refuse || a.Verb == ownership.Pull && w.wire().underway(i, a.To) {
		w.tell(i, "decides", a)
		return false
	}
	w.tell(i, "decides", a)
	p := &pending{action: a, read: read, unread: unread, ignored: w.someoneKnowsMore(i, read.volume)}
	if v := w.server.current.volume; v != nil {
		p.factor = v.Factor
	}
	for j := range w.nodes {
		p.wrecked[j] = w.nodes[j].wrecked
	}
	n.pending = p
	return true
}

// read is the uncached read; a mutant may get an older version.
func (w *World) read(stale uint8) *version {
	v := w.server.current
	if w.rules.Conduct.CachedReads {
		for k := stale & 3; k > 0 && v.before != nil; k-- {
			v = v.before
		}
	}
	return v
}

// keep is how many snapshots beyond the necessary nodes keep.
const keep = 1

func (w agents) nodeFacts(i int, read *version, stale uint8) *ownership.NodeFacts {
	n := &w.nodes[i]
	f := &w.scratch.node
	*f = ownership.NodeFacts{
		Me: names[i], Boot: bootNames[n.boot], Now: w.clock(), Record: read.volume, Copy: n.copy,
		Wanted: n.wanted && !n.served, Mounted: n.mounted, Full: n.refused, SnapshotDue: w.cfg.Eager || n.sinceSnapshot >= snapshotInterval,
		OutOfService: n.tainted, SinceRenewal: n.sinceRenewal, Lapsed: n.lapsed, Disk: w.disk.seenBy(i), Keep: keep,
	}
	f.FreshID = w.freshID(i)
	f.Peers = w.ask(i, read.volume, stale)
	return f
}

// bootNames are the boot ids of every machine; more than a schedule has steps.
var bootNames = func() (out [256]string) {
	for i := range out {
		out[i] = fmt.Sprintf("boot%d", i)
	}
	return out
}()

// ask collects the peers' answers. An agent that means to destroy its copy also
// asks them to confirm and hold the same data.
func (w agents) ask(i int, v *ownership.Volume, stale uint8) []ownership.Peer {
	n := &w.nodes[i]
	if w.rules.Conduct.WordOfMouth {
		return hearsay(v, names[i])
	}
	leaving := w.leaving(i, v)
	peers, bits := w.scratch.peers[:0], stale
	for j := 0; j < w.cfg.Nodes; j++ {
		if j == i || !w.answers(i, j) {
			continue
		}
		p := ownership.Peer{Node: names[j], Load: j}
		if bits&backwards != 0 {
			p.Load = maxNodes - j
		}
		q := &w.nodes[j]
		if e, ok := entryOf(v, names[j]); leaving && ok && e.State != ownership.Removing {
			stale = 0
			var hold ownership.Hold
			need := v.Newest(n.copy.Points)
			if hold, p.Confirmed = w.rules.Confirm(&q.copy, names[i], need, w.clock()); p.Confirmed {
				q.copy.Holds = withHold(&q.copy, hold, w.clock())
			}
		}
		p.Copy = w.answer(n, j, stale)
		peers = append(peers, p)
	}
	return peers
}

// answer is peer j's copy as it is. A mutant may take the last answer that it heard
// instead.
func (w agents) answer(n *node, j int, stale uint8) ownership.Copy {
	q := &w.nodes[j].copy
	if !w.rules.Conduct.OldAnswers {
		return *q
	}
	if n.heard == nil {
		n.heard = &[maxNodes]ownership.Copy{}
	}
	if stale&(1<<(j+2)) == 0 || !n.heard[j].Exists {
		n.heard[j] = *q
	}
	return n.heard[j]
}

func (w agents) leaving(i int, v *ownership.Volume) bool {
	n := &w.nodes[i]
	if !w.cfg.Kind.Traits().Data || !n.copy.Exists || v == nil {
		return false
	}
	e, ok := v.Replica(names[i])
	return !ok || e.State == ownership.Removing
}

func entryOf(v *ownership.Volume, node string) (ownership.Replica, bool) {
	if v == nil {
		return ownership.Replica{}, false
	}
	return v.Replica(node)
}

// withHold adds a hold to those of a copy, and forgets those that have ended.
func withHold(c *ownership.Copy, h ownership.Hold, now time.Time) []ownership.Hold {
	alive := slices.DeleteFunc(slices.Clone(c.Holds), func(o ownership.Hold) bool { return !o.Until.After(now) })
	return ownership.WithHold(alive, h, c.Points)
}

// hearsay are the answers that a shell assumes if it believes the record instead of
// asking.
func hearsay(v *ownership.Volume, me string) (out []ownership.Peer) {
	if v == nil {
		return nil
	}
	for _, r := range v.Replicas {
		if r.Node == me || r.Point.IsZero() {
			continue
		}
		c := ownership.Copy{Exists: true, Points: []lineage.Point{r.Point}, Promise: ownership.Promise{Epoch: v.Epoch, Lineage: v.Lineage}}
		out = append(out, ownership.Peer{Node: r.Node, Copy: c, Confirmed: true})
	}
	return out
}

// someoneKnowsMore tells whether this node, or one that it can reach, has heard
// of the epoch in which the volume was last written while the record has not.
func (w agents) someoneKnowsMore(i int, v *ownership.Volume) bool {
	if v == nil || knows(v.Lineage, w.truth.epoch) {
		return false
	}
	for j := 0; j < w.cfg.Nodes; j++ {
		if (j == i || w.answers(i, j)) && knows(w.nodes[j].copy.Promise.Lineage, w.truth.epoch) {
			return true
		}
	}
	return false
}
