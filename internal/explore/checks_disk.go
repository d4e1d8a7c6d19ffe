package explore

import (
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// checkReserve: no node takes the reservation from a newer epoch.
func (w diskJudge) checkReserve(i int, before, k ownership.Key) {
	if before.Epoch.Number > k.Epoch.Number {
		w.fail("fence: %s took the reservation for epoch %v from epoch %v", names[i], k.Epoch, before.Epoch)
	}
}

// ended tells whether the record has said that no more is written in the epoch.
func (w diskJudge) ended(e lineage.Epoch) bool {
	return slices.Contains(w.truth.fenced, e) || slices.Contains(w.truth.released, e)
}

// helpless tells whether the target has lost the reservation, and so takes the writes of all until a writer reserves the
// disk again. No rule can help that.
func (w diskJudge) helpless() bool { return w.truth.cleared && w.disk.holder == ownership.Key{} }

// checkGoesOn judges a node's decision to close an epoch in which its pod writes. That a backup has forgotten the epoch is
// no reason: the node mends the record.
func (w diskJudge) checkGoesOn(i int, a *ownership.Action, read *ownership.Volume) {
	n := &w.nodes[i]
	e := n.copy.Opened
	if !w.cfg.Many || a.Verb != ownership.Close || read == nil || a.Promise.Epoch != e || !n.mounted || !n.wanted || n.lapsed || w.ended(e) {
		return
	}
	writes := w.disk.seenBy(i).Registered == ownership.Key{Node: names[i], Epoch: e}.Raw()
	if writes && !given(read, e) && read.On(names[i]).Epoch.Number < e.Number {
		w.fail("session: %s gives epoch %v up, which the record forgot, and its pod writes", names[i], e)
	}
}

// given says whether a record has a writer whose epoch has the number of e. Then it has no place for e, if it forgot that.
func given(v *ownership.Volume, e lineage.Epoch) bool {
	return slices.ContainsFunc(v.AllWriters(), func(o ownership.Writer) bool { return o.Epoch.Number == e.Number })
}

// checkShutsOut judges a node's decision to remove a registration. It may remove that of a writer at work only if the
// record asks for that, or if the record does not know the writer's epoch and the writer does not answer, or cannot
// record its epoch again. A record may forget a writer whose epoch has ended.
func (w diskJudge) checkShutsOut(i int, a *ownership.Action, read *ownership.Volume) {
	if !w.cfg.Many || a.Verb != ownership.Reserve || read == nil {
		return
	}
	for j := range w.nodes {
		k, n := w.disk.keys[j], &w.nodes[j]
		if j == i || a.Expect == 0 || k.Raw() != a.Expect || k.Fence || n.copy.Opened != k.Epoch || n.copy.GaveUp(k.Epoch) {
			continue
		}
		v := read.On(names[j])
		if v.Epoch == k.Epoch && v.Primary.Phase.Open() && v.FenceRequest.Epoch != k.Epoch {
			w.fail("session: %s shuts %s out of epoch %v, and nobody has asked for it", names[i], names[j], k.Epoch)
		}
		if v.Epoch.Number < k.Epoch.Number && !given(read, k.Epoch) && !w.ended(k.Epoch) && w.answers(i, j) {
			w.fail("session: %s shuts %s out, which answers, and whose epoch %v the record forgot", names[i], names[j], k.Epoch)
		}
	}
}

// checkSaysFenced judges the decision to say that a writer is shut out: at that moment the disk refuses it.
func (w diskJudge) checkSaysFenced(i int, a *ownership.Action) {
	if !w.cfg.Many || a.Verb != ownership.Record || a.Reason != ownership.ShuttingOut {
		return
	}
	e, _ := a.Next.Replica(names[i])
	for j := range w.nodes {
		if n := &w.nodes[j]; n.mounted && n.copy.Opened == e.Fenced && w.disk.accepts(j) {
			w.fail("fence: %s says that %s is shut out of epoch %v, and the disk accepts its writes", names[i], names[j], e.Fenced)
		}
	}
}

// checkWord: a disk that does not fail over by itself is taken from its writer only if an administrator has
// asked for it in this epoch, has declared the machine to be off, or the node itself has stopped. A process
// never writes the request.
func (w diskJudge) checkWord(old, v *ownership.Volume, p *pending) {
	if v.Kind.Traits().Data || w.cfg.Automatic || old.FenceRequest.Epoch == old.Epoch {
		return
	}
	if v.FenceRequest.Epoch == old.Epoch {
		w.fail("policy: a standby was asked to shut out epoch %v of a manual volume", old.Epoch)
	}
	if old.Primary.Phase.Open() && v.Primary.Phase == ownership.Fenced && !p.ordered {
		w.fail("policy: epoch %v of a manual volume was fenced and no administrator asked for it", old.Epoch)
	}
}

// checkClean: after a mount that did not end with everything flushed, the next one begins with a
// consistency check.
func (w diskJudge) checkClean(i int, check bool) {
	if !w.cfg.Kind.Traits().Reserves || w.cfg.Many || !w.disk.accepts(i) {
		return // it cannot write, whatever it mounts
	}
	if w.truth.unclean && !check {
		w.fail("check: %s mounts a disk that was not unmounted cleanly without checking it", names[i])
	}
	w.truth.unclean = true
}

// checkDetach: no disk is detached under a mount.
func (w diskJudge) checkDetach(i int) {
	if w.nodes[i].mounted {
		w.fail("detach: the disk was detached from %s under a mount", names[i])
	}
}

// checkAttachments judges a change of the attachments in the record.
func (w diskJudge) checkAttachments(old, v *ownership.Volume, p *pending) {
	if !v.Kind.Traits().Attaches {
		return
	}
	if len(v.Replicas) > w.cfg.Shares && len(v.Replicas) > len(old.Replicas) {
		w.fail("shares: %d attachments are recorded for a disk with %d shares", len(v.Replicas), w.cfg.Shares)
	}
	if v.ExpireAt.IsZero() && !old.ExpireAt.IsZero() {
		w.truth.usedAt = w.now
	}
	left, gone, forsaken, stuck := 0, 0, 0, 0 // stuck: on its way out where no node can end it
	for _, e := range v.Replicas {
		before, had := old.Replica(e.Node)
		switch at := uint8(1) << indexOf(e.Node); {
		case !going(e.State):
			left++
		case p.unseen&at != 0 && had && going(before.State):
			stuck++
		case had && !going(before.State):
			w.checkMarked(old, e.Node, p)
			if p.deleted&at != 0 {
				forsaken++
			}
			if !w.cfg.Yields || p.waiting&at == 0 {
				gone++
			}
		}
	}
	if gone > forsaken && left+stuck == 0 && len(old.Replicas) > 1 && p.unused < ownership.ExpireAfter && !w.truth.restored && !old.Deleting {
		w.fail("expiry: all attachments go %v after the volume was used", p.unused)
	}
}

func going(s ownership.State) bool { return s == ownership.Removing || s == ownership.Gone }

// checkMarked judges the first phase of the removal of one attachment.
func (w diskJudge) checkMarked(old *ownership.Volume, node string, p *pending) {
	if o := old.On(node).Primary; o.Node == node && (o.Phase == ownership.Active || o.Phase == ownership.Preparing) {
		w.fail("attachment: the owner %s loses its attachment", node)
	}
	if old.Deleting {
		return
	}
	if p.wanted&(1<<indexOf(node)) != 0 {
		w.fail("attachment: %s loses its attachment although a pod there wants the volume", node)
	}
	if !w.mayGo(old, node, p) {
		w.fail("attachment: %s loses its attachment for no reason", node)
	}
}

// mayGo tells whether an attachment that is neither the owner's nor wanted has to make room, or is
// of no use.
func (w diskJudge) mayGo(old *ownership.Volume, node string, p *pending) bool {
	e, _ := old.Replica(node)
	unmet := int(p.wanted) // pods whose node has no attachment
	for _, r := range old.Replicas {
		unmet &^= 1 << indexOf(r.Node)
	}
	switch {
	case w.spares(old, &e, p), e.State == ownership.Failed, p.unused >= ownership.ExpireAfter, w.truth.restored:
		return true
	case unmet != 0 && len(old.Replicas) >= w.cfg.Shares, p.deleted&(1<<indexOf(node)) != 0:
		return true
	}
	return w.cfg.Yields && p.waiting&(1<<indexOf(node)) != 0
}

// spares tells whether enough attachments are on nodes that stay. While one works that is on a node that is
// leaving, only those count that work.
func (w diskJudge) spares(old *ownership.Volume, e *ownership.Replica, p *pending) bool {
	leaves := func(node string) bool { return p.leaving&(1<<indexOf(node)) != 0 }
	others := 0
	for _, r := range old.Replicas {
		works := r.State == ownership.Ready || !leaves(e.Node) || e.State != ownership.Ready
		if r.Node != e.Node && !going(r.State) && !leaves(r.Node) && works {
			others++
		}
	}
	return others >= old.Factor
}

// checkLeak: an entry leaves the record only after its attachment is gone, or after its node: that detaches the disk
// when it is back.
func (w diskJudge) checkLeak(node string) {
	if at := uint8(1) << indexOf(node); w.truth.forsaken&at != 0 {
		w.truth.forsaken &^= at
		return
	}
	if l := w.disk.links[indexOf(node)]; w.cfg.Kind.Traits().Attaches && l != ownership.Detached && !w.truth.restored {
		w.fail("leak: the entry of %s left the record and its attachment is %v", node, l)
	}
}

// checkGivesUp: the end of a session alone does not end the mount of the rightful owner.
func (w diskJudge) checkGivesUp(i int, a *ownership.Action) {
	n, v := &w.nodes[i], w.server.current.volume
	if a.Verb != ownership.Close && a.Verb != ownership.Unmount || !w.cfg.Kind.Traits().Reserves || v == nil || !n.wanted || !n.mounted {
		return
	}
	e := n.copy.Opened
	v = v.On(names[i])
	if v.Epoch != e || v.Primary.Node != names[i] || v.Primary.Phase != ownership.Active || n.copy.Closed.Number >= e.Number {
		return
	}
	if w.cfg.Many {
		if w.disk.keys[i] == (ownership.Key{Node: names[i], Epoch: e}) {
			w.fail("session: %s gives epoch %v up although it is registered", names[i], e)
		}
		return
	}
	if w.disk.holder == (ownership.Key{Node: names[i], Epoch: e}) || w.disk.holder == (ownership.Key{}) && !w.disk.persistent {
		w.fail("session: %s gives epoch %v up although no other node has taken the reservation", names[i], e)
	}
}
