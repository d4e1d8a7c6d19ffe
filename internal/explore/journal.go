package explore

import "berth.dev/berth/internal/ownership"

// Written is one write of the record that the compare-and-swap accepted.
type Written struct {
	// By is the node or the controller that wrote.
	By string
	// Before is the record that the write replaced, nil if there was none.
	Before, After *ownership.Volume
	// Mended: the record was older than what a node knows.
	Mended bool
	// Wrong is the violation that the checks found in this very write.
	Wrong string
}

func (w recordJudge) journal(who int, p *pending, wrong bool) {
	if w.rules.Journal == nil {
		return
	}
	j := Written{By: names[who], Before: w.server.current.volume, After: p.action.Next, Mended: p.action.Reason == ownership.RecordBehind}
	if wrong {
		j.Wrong = w.Violation
	}
	w.rules.Journal(j)
}
