package explore

import (
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// recordedOthers counts replicas as the record has them, the given node apart.
func recordedOthers(v *ownership.Volume, node string) (n int) {
	mine, _ := v.Replica(node)
	for _, r := range v.Replicas {
		if r.Node != node && r.Point.Seq >= mine.Point.Seq && r.State != ownership.Gone {
			n++
		}
	}
	return n
}

// leaves replaces the second phase of a removal by a check of another kind.
func leaves(enough func(f *ownership.NodeFacts) bool) func(nodeRule) nodeRule {
	return func(old nodeRule) nodeRule {
		return func(f *ownership.NodeFacts) (ownership.Action, bool) {
			e, _ := f.Record.Replica(f.Me)
			if e.State != ownership.Removing || !f.Copy.Exists || f.Mounted || !enough(f) {
				return old(f)
			}
			return ownership.Action{Verb: ownership.Destroy, Why: ownership.Why{Reason: ownership.Unneeded, Node: f.Me}}, true
		}
	}
}

func markAny(f *ownership.ControllerFacts) (ownership.Action, bool) {
	v := f.Record
	for i := len(v.Replicas) - 1; i >= 0 && len(v.Replicas) > v.Factor; i-- {
		r := v.Replicas[i]
		if r.State != ownership.Removing && r.State != ownership.Gone && (r.Node != v.Primary.Node || !v.Primary.Phase.Open()) {
			next := changed(v, func(n *ownership.Volume) { setState(n, r.Node, ownership.Removing) })
			return ownership.Action{Verb: ownership.Record, Next: next}, true
		}
	}
	return ownership.Action{}, false
}

var removalMutants = []Mutant{
	{"seed-removal", "drop the own entry, read the record again, count it, delete", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("surplus", always2(markAny))
		r.Tend = r.Tend.Alter("leave", leaves(func(f *ownership.NodeFacts) bool {
			return recordedOthers(f.Record, f.Me) >= f.Record.Factor
		}))
		r.Conduct.CachedReads = true
	}},
	{"counts-itself", "the copy that goes is one of the copies that stay", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("surplus", always2(markAny))
		r.Tend = r.Tend.Alter("leave", leaves(func(f *ownership.NodeFacts) bool {
			n := 1
			for _, p := range f.Peers {
				if p.Confirmed {
					n++
				}
			}
			return n >= f.Record.Factor
		}))
	}},
	{"marked-is-enough", "what the record has marked may be destroyed without asking anybody", func(r *Rules) {
		r.Tend = r.Tend.Alter("leave", leaves(func(*ownership.NodeFacts) bool { return true }))
	}},
	{"removing-counts", "a copy that is about to go still counts", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("surplus", always2(markAny))
		r.Tend = r.Tend.Alter("leave", leaves(func(f *ownership.NodeFacts) bool {
			n := 0
			for _, p := range f.Peers {
				if p.Copy.Exists && !p.Copy.Condemned && p.Copy.Tip().Seq >= f.Copy.Tip().Seq {
					n++
				}
			}
			return n >= f.Record.Factor
		}))
	}},
	{"stale-copies-count", "any copy is a copy, however old", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("surplus", always2(markAny))
		r.Confirm = func(c *ownership.Copy, asker string, p lineage.Point, now time.Time) (ownership.Hold, bool) {
			return ownership.Hold{For: asker, Point: p, Until: now.Add(ownership.HoldFor)}, c.Exists
		}
		r.Tend = r.Tend.Alter("leave", leaves(func(f *ownership.NodeFacts) bool {
			n := 0
			for _, p := range f.Peers {
				if e, ok := f.Record.Replica(p.Node); ok && p.Confirmed && e.State != ownership.Removing {
					n++
				}
			}
			return n >= f.Record.Factor
		}))
	}},
	{"not-found-is-deleted", "a record that is gone means that the data may go", func(r *Rules) {
		r.Tend = r.Tend.Alter("collect", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if f.Record == nil && f.Copy.Exists && !f.Mounted {
					return ownership.Action{Verb: ownership.Destroy, Why: ownership.Why{Reason: ownership.LooksOrphaned}}, true
				}
				return old(f)
			}
		})
	}},
	{"error-is-not-found", "a record that cannot be read is not there", func(r *Rules) {
		r.Unstage, r.Tend = r.Unstage.Without("record read"), r.Tend.Without("record read")
	}},
	{"orphans-go", "a copy without an entry is nobody's", func(r *Rules) {
		r.Tend = r.Tend.Alter("collect", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				a, ok := old(f)
				if ok && f.Record != nil && a.Verb == ownership.Quarantine {
					a.Verb = ownership.Destroy
				}
				return a, ok
			}
		})
	}},
	{"leaves-with-branch", "a copy that is to go needs no branch", func(r *Rules) {
		r.Tend = r.Tend.Alter("put branch aside", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if e, _ := f.Record.Replica(f.Me); e.State == ownership.Removing {
					return ownership.Action{}, false
				}
				return old(f)
			}
		})
	}},
	{"trash-stays-trash", "a condemned copy goes, whatever the record says by then", func(r *Rules) {
		r.Tend = r.Tend.Without("reprieve").Alter("leave", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if f.Copy.Condemned && !f.Mounted && !f.Copy.DestroyAt.After(f.Now) {
					return ownership.Action{Verb: ownership.Destroy, Why: ownership.Why{Reason: ownership.Unneeded, Node: f.Me}}, true
				}
				return old(f)
			}
		})
	}},
}
