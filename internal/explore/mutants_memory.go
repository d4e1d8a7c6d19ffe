package explore

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// onlyLast remembers one epoch that was given up: the last, and none before it.
func onlyLast(asked func(f *ownership.NodeFacts) lineage.Epoch) func(nodeRule) nodeRule {
	return seeing(func(f *ownership.NodeFacts) {
		if f.Record != nil && f.Copy.Closed != asked(f) {
			f.Copy.Closed = lineage.Epoch{}
		}
	})
}

// closing is the epoch that Unstage wants to see closed.
func closing(f *ownership.NodeFacts) lineage.Epoch {
	if f.Record.Primary.Node == f.Me && f.Record.Primary.Phase.Open() && !f.Mounted {
		return f.Record.Epoch
	}
	return f.Copy.Opened
}

func claimed(f *ownership.NodeFacts) lineage.Epoch { return f.Record.Epoch }

// oblivious makes a promise without the losses before it.
func oblivious(old nodeRule) nodeRule {
	return func(f *ownership.NodeFacts) (ownership.Action, bool) {
		a, ok := old(f)
		a.Promise.Losses = nil
		return a, ok
	}
}

var memoryMutants = []Mutant{
	{"last-given-up", "a node need only know the last epoch that it closed", func(r *Rules) {
		r.Unstage = r.Unstage.Alter("close copy", onlyLast(closing))
		r.Stage = r.Stage.Alter("restart", onlyLast(claimed))
	}},
	{"gone-and-wanted", "an epoch is given up when no pod waits for it, and not before", func(r *Rules) {
		r.Tend = r.Tend.Alter("give up", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if f.Wanted {
					return ownership.Action{}, false
				}
				return old(f)
			}
		})
	}},
	{"promise-without-losses", "what was given up is written in the record, and that is enough", func(r *Rules) {
		r.Stage, r.Unstage = r.Stage.Alter("promise", oblivious), r.Unstage.Alter("promise", oblivious)
		r.Tend = r.Tend.Alter("promise", oblivious)
	}},
}
