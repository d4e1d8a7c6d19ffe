package explore

import "berth.dev/berth/internal/ownership"

// reduce takes a step at once if no process can tell it from a later one. Each such
// step commutes with everything that others may do before it, and makes nothing
// impossible that was possible:
//
//   - A decision to write the record is forgotten when another process was faster.
//     The write would fail, and a version never comes again.
//   - No other process sees the opening and closing of a copy or the putting aside
//     of a branch, and none changes the same state: it may as well follow the
//     decision at once. A crash before it is a crash before the decision. An opening that registers at a disk is
//     seen by all.
//   - A stream from an epoch older than the receiver's promise, to a point that the promise left out, is refused
//     whenever it comes, because promises only grow.
//
// The last two do not hold if a backup takes numbers back or a copy is lost. The
// second does not hold either where a clock may stop a node between the two.
// note, if not nil, receives the same steps as events.
func (w *World) reduce(ahead *horizon, note func(Kind, int)) {
	if w.rules.Conduct != (Conduct{}) {
		return
	}
	if note == nil {
		note = func(Kind, int) {}
	}
	for i := range w.cfg.Nodes {
		w.agents().reduceAgent(i, ahead, note)
	}
	for c := range w.ctl {
		if p := w.ctl[c].pending; p != nil && p.read.rv != w.server.current.rv {
			w.ctl[c].pending = nil
			note(controllerSteps, c)
		}
	}
	for k := len(w.streams) - 1; k >= 0 && !ahead.backups; k-- {
		if w.wire().outdated(&w.streams[k]) {
			w.wire().lose(k)
			note(loses, k)
		}
	}
}

// outdated tells whether the stream will always be refused. The rules are asked
// about a receiver with nothing else in the way, because they may be a mutant's.
func (w wire) outdated(s *stream) bool {
	c := w.nodes[s.to].copy
	if s.header.Promise.Epoch.Number >= c.Promise.Epoch.Number || c.Promise.Lineage.Contains(s.header.Target) {
		return false
	}
	c.Dirty = false
	ok, _ := w.rules.Receive(&c, false, &s.header)
	return !ok
}

func (w agents) reduceAgent(i int, ahead *horizon, note func(Kind, int)) {
	n := &w.nodes[i]
	p := n.pending
	if p == nil {
		return
	}
	switch p.action.Verb {
	case ownership.Record:
		if p.read.rv == w.server.current.rv {
			return
		}
		n.pending = nil
		if w.runs(i) {
			note(agentSteps, i)
			return
		}
		note(agentStops, i)
		note(agentStarts, i)
	case ownership.Open, ownership.Close, ownership.Preserve:
		if !ahead.backups && !ahead.time && p.action.Key == (ownership.Key{}) {
			n.pending = nil
			w.act(i, p)
			note(agentSteps, i)
		}
	}
}

// unfold writes down the steps that a reduced run took at once, so that the way
// it went can be told and played like any schedule.
func unfold(b *Bounds, rules *Rules, events []Event) (out []Event) {
	ahead := b.horizon()
	w := New(b.Config, rules)
	for _, e := range events {
		out = append(out, e)
		if w.Apply(e); w.Violation != "" {
			break
		}
		w.reduce(&ahead, func(k Kind, a int) { out = append(out, Event{Kind: k, A: uint8(a)}) })
	}
	return out
}
