package explore

import "berth.dev/berth/internal/ownership"

// reduce takes the steps at once that nobody can tell from a later one. Each
// commutes with everything that others may do before it, and leaves nothing
// impossible that was possible:
//
//   - A decision to write the record is forgotten when somebody was faster. The
//     write would fail, and a version never comes again.
//   - Opening and closing a copy and putting a branch aside is seen by nobody
//     else, and nobody else changes what it changes: it may as well follow the
//     decision at once. A crash before it is a crash before the decision.
//   - A stream from an epoch older than the receiver's promise is refused whenever
//     it comes, because promises only grow.
//
// None of this holds for a backup that takes numbers back, for a copy that is
// lost, nor for a node that lets itself be stopped by a clock between the two.
func (w *World) reduce(ahead *horizon) {
	if w.rules.Conduct != (Conduct{}) {
		return
	}
	for i := range w.cfg.Nodes {
		p := w.nodes[i].pending
		if p == nil {
			continue
		}
		switch p.action.Verb {
		case ownership.Record:
			if p.read.rv != w.server.current.rv {
				w.nodes[i].pending = nil
			}
		case ownership.Open, ownership.Close, ownership.Preserve:
			if !ahead.backups && !ahead.time {
				w.nodes[i].pending = nil
				w.act(i, p)
			}
		}
	}
	for c := range w.ctl {
		if p := w.ctl[c].pending; p != nil && p.read.rv != w.server.current.rv {
			w.ctl[c].pending = nil
		}
	}
	for k := len(w.streams) - 1; k >= 0 && !ahead.backups; k-- {
		s := &w.streams[k]
		if s.header.Promise.Epoch.Number < w.nodes[s.to].copy.Promise.Epoch.Number {
			w.lose(k)
		}
	}
}
