package explore

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// diskStep carries out an action on the shared disk.
func (w agents) diskStep(i int, a *ownership.Action) {
	switch a.Verb {
	case ownership.Register:
		w.register(i, a.Key)
	case ownership.Reserve:
		before := w.disk.holder
		if w.cfg.Many {
			w.disk.preempt(i, a.Expect, a.Key)
		} else if w.disk.reserve(i, a.Expect, a.Key, w.rules.Conduct.BlindReserve) {
			w.diskJudge().checkReserve(i, before, a.Key)
		}
	case ownership.Attach:
		w.disk.links[i] = ownership.Attaching
	case ownership.Detach:
		w.diskJudge().checkDetach(i)
		w.nodes[i].late = lineage.Epoch{} // it belongs to the session that ends
		w.disk.detach(i)
		w.slots.freed(i)
	}
}

// register waits for the commands of another volume that are on their way.
func (w agents) register(i int, k ownership.Key) {
	if w.nodes[i].late == wiped {
		w.land(i)
	}
	w.disk.register(i, k)
}

// diskEvent is something that happens at the target or to an attachment.
func (w faults) diskEvent(k Kind, i int, fails bool) bool {
	if !w.cfg.Kind.Traits().Reserves {
		return false
	}
	d := &w.disk
	switch k {
	case sends:
		return w.sendCommand(i)
	case lands:
		return w.agents().land(i)
	case attaches:
		if d.links[i] != ownership.Attaching {
			return false
		}
		d.finish(i, !fails && w.slots.taken&(1<<i) == 0)
		return true
	case blips:
		if d.links[i] != ownership.Attached {
			return false
		}
		d.endSession(i)
		return true
	case clears:
		if !w.cfg.Many || !d.clear() {
			return false
		}
		w.truth.cleared = true
		return true
	case restartsTarget: // not after a backup: see restore
		if !d.persistent && w.truth.restored {
			return false
		}
		d.restart()
		w.truth.forgot = w.truth.forgot || !d.persistent
		return true
	case presses:
		return w.slots.press(i, d.links[i] == ownership.Detached)
	case relieves:
		return w.slots.relieve(i)
	}
	return false
}

// sendCommand lets node i send a write to the disk that the disk executes later, or never.
func (w faults) sendCommand(i int) bool {
	n := &w.nodes[i]
	if !n.up || n.paused || !n.mounted || !n.late.IsZero() {
		return false
	}
	n.late = n.copy.Opened
	return true
}

// land lets the disk execute the command of node i that is on its way. A machine that sleeps has no
// say in that.
func (w agents) land(i int) bool {
	n := &w.nodes[i]
	if n.late.IsZero() {
		return false
	}
	w.diskJudge().checkDiskWrite(i, n.late)
	n.late = lineage.Epoch{}
	return true
}

// slotFacts are what the ledger tells a controller about node i.
func (w overseers) slotFacts(m *ownership.Machine, v *ownership.Volume, i int) {
	_, has := v.Replica(names[i])
	bit := uint8(1) << i
	if !has && w.disk.links[i] == ownership.Detached && (w.slots.taken|w.slots.waiting)&bit == 0 {
		m.Slots = 1
	}
	m.GiveWay = has && w.slots.waiting&bit != 0
}

// wantedNodes are the nodes to which a pod is bound.
func (w overseers) wantedNodes(out []string) []string {
	for i := range w.cfg.Nodes {
		if w.nodes[i].wanted {
			out = append(out, names[i])
		}
	}
	return out
}

// noteUse is called before time passes and before the record changes: an owner uses the volume.
func (w diskJudge) noteUse() {
	if v := w.server.current.volume; v != nil && len(v.Writing()) > 0 {
		w.truth.usedAt = w.now
	}
}

// noteFence is called when the record is about to change: a writer that is fenced has not used the volume since that was
// decided, because the proof is older. The deadline that a fence sets is as old as the decision.
func (w diskJudge) noteFence(p *pending) {
	if v := p.action.Next; w.fences(p) && len(v.Writing()) == 0 {
		w.truth.usedAt = p.decided
	}
}

// fences tells whether a decision is that of a fence, whose deadline is not of the moment at which it is written.
func (w diskJudge) fences(p *pending) bool {
	return p.action.Reason == ownership.WriterFenced && w.cfg.Kind.Traits().Attaches
}

// noteWish notes that a controller has seen a pod which wants the volume. While a deadline is in
// the record that leaves less time, the sight counts only once the record says so: see checkAttachments.
func (w diskJudge) noteWish(v *ownership.Volume, wanted int) {
	for c := range w.ctl {
		if p := w.ctl[c].pending; p != nil && !p.action.Next.ExpireAt.IsZero() {
			return // it may still write a deadline that it set before
		}
	}
	if wanted > 0 && (v.ExpireAt.IsZero() || v.ExpireAt.Sub(w.clock()) >= ownership.ExpireAfter) {
		w.truth.usedAt = w.now
	}
}
