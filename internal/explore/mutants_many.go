package explore

import (
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// amongMany makes a rule that is asked about altered facts where several nodes write.
func amongMany(alter func(f *ownership.NodeFacts)) func(nodeRule) nodeRule {
	return seeing(func(f *ownership.NodeFacts) {
		if f.Record != nil && f.Record.Sharing.ManyWriters {
			alter(f)
		}
	})
}

// correcting makes a rule whose action is changed where several nodes write.
func correcting(change func(f *ownership.NodeFacts, a *ownership.Action)) func(nodeRule) nodeRule {
	return func(old nodeRule) nodeRule {
		return func(f *ownership.NodeFacts) (ownership.Action, bool) {
			a, ok := old(f)
			if ok && f.Record.Sharing.ManyWriters {
				change(f, &a)
			}
			return a, ok && a.Verb != ownership.Nothing
		}
	}
}

// alone makes a controller's rule that knows of no writer but the one about which it decides.
func alone(old controllerRule) controllerRule {
	return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
		g := *f
		g.Record = changed(f.Record, func(v *ownership.Volume) { v.Writers = nil })
		a, ok := old(&g)
		if a.Next != nil {
			a.Next.Writers = f.Record.Writers
		}
		return a, ok
	}
}

// joinsAgain registers a session again whose key is still there, as a single writer does.
func joinsAgain(old nodeRule) nodeRule {
	return func(f *ownership.NodeFacts) (ownership.Action, bool) {
		mine := ownership.Key{Node: f.Me, Epoch: f.Copy.Opened}
		ended := f.Disk.Link == ownership.Attached && f.Disk.Registered != mine.Raw() && slices.Contains(f.Disk.Keys, mine.Raw())
		if f.Disk.Registrants && f.Mounted && ended && !f.Copy.GaveUp(f.Copy.Opened) {
			return ownership.Action{Verb: ownership.Register, Key: mine, Why: ownership.Why{Reason: ownership.SessionRenewed, Node: f.Me, Epoch: mine.Epoch}}, true
		}
		return old(f)
	}
}

// manyMutants are mistakes about disks that several nodes write.
var manyMutants = []Mutant{
	{"joins-again", "a key that is still there says that nobody has shut its node out", func(r *Rules) {
		r.Stage, r.Tend = r.Stage.Alter("step down", joinsAgain), r.Tend.Alter("session", joinsAgain)
	}},
	{"joins-unasked", "a node that is to be shut out will find that its key is gone", func(r *Rules) {
		r.Stage = r.Stage.Alter("reservation", amongMany(func(f *ownership.NodeFacts) {
			f.Record = changed(f.Record, func(v *ownership.Volume) { v.FenceRequest = ownership.FenceRequest{} })
		}))
	}},
	{"expels-by-hope", "a writer that shall be shut out is as good as shut out", func(r *Rules) {
		r.Tend = r.Tend.Alter("fence request", amongMany(func(f *ownership.NodeFacts) { f.Disk.Keys = nil }))
	}},
	{"forgotten-is-removed", "a key that is not there has been removed, whatever the target has forgotten", func(r *Rules) {
		r.Tend = r.Tend.Alter("fence request", amongMany(func(f *ownership.NodeFacts) { f.Disk.Holder, f.Disk.Registrants = 1, true }))
	}},
	{"keeps-old-keys", "a registration that nobody uses does no harm", func(r *Rules) {
		r.Stage = r.Stage.Alter("reservation", correcting(func(f *ownership.NodeFacts, a *ownership.Action) {
			if a.Verb == ownership.Reserve && f.Disk.Holder != 0 && f.Disk.Registrants {
				*a = ownership.Action{}
			}
		}))
	}},
	{"mine-alone", "a writer keeps out all that are not its own epoch", func(r *Rules) {
		r.Stage = r.Stage.Alter("reservation", amongMany(func(f *ownership.NodeFacts) {
			f.Record = changed(f.Record, func(v *ownership.Volume) { v.Writers = nil })
			f.Peers = nil
		}))
	}},
	{"joins-the-unrecorded", "the record knows each writer", func(r *Rules) {
		r.Stage = r.Stage.Alter("reservation", amongMany(func(f *ownership.NodeFacts) { f.Peers = nil }))
	}},
	{"unprotected", "a reservation that was taken stays", func(r *Rules) { r.Tend = r.Tend.Without("protect") }},
	{"session-is-registered", "a session that ended is registered as long as its key is there", func(r *Rules) {
		own := amongMany(func(f *ownership.NodeFacts) {
			if mine := (ownership.Key{Node: f.Me, Epoch: f.Record.Epoch}).Raw(); slices.Contains(f.Disk.Keys, mine) {
				f.Disk.Registered = mine
			}
		})
		r.Stage, r.Tend = r.Stage.Alter("step down", own).Alter("reservation", own), r.Tend.Alter("step down", own)
	}},
	{"writer-stays-forgotten", "a node whose epoch the record forgot opens another", func(r *Rules) {
		single := func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if f.Record != nil && f.Record.Sharing.ManyWriters {
					return ownership.Action{}, false
				}
				return old(f)
			}
		}
		r.Stage, r.Tend, r.Unstage = r.Stage.Alter("repair record", single), r.Tend.Alter("repair record", single), r.Unstage.Alter("repair record", single)
		r.Oversee = r.Oversee.Alter("repair record", func(old controllerRule) controllerRule {
			return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
				if f.Record.Sharing.ManyWriters {
					return ownership.Action{}, false
				}
				return old(f)
			}
		})
	}},
	{"one-writer-counts", "the controller need only know the newest writer", func(r *Rules) {
		r.Each = func(rules ownership.Chain[ownership.ControllerFacts], f *ownership.ControllerFacts, about func(*ownership.ControllerFacts, string)) ownership.Action {
			g := *f
			about(&g, f.Record.Primary.Node)
			return rules.Decide(&g)
		}
	}},
	{"one-waits-all-wait", "what is to be waited for comes first", func(r *Rules) {
		r.Each = func(rules ownership.Chain[ownership.ControllerFacts], f *ownership.ControllerFacts, about func(*ownership.ControllerFacts, string)) ownership.Action {
			waits := false
			return ownership.Oversee(ownership.Chain[ownership.ControllerFacts]{{Name: "all", Decide: func(g *ownership.ControllerFacts) (ownership.Action, bool) {
				if waits {
					return ownership.Action{}, false
				}
				a := rules.Decide(g)
				waits = a.Verb == ownership.Wait
				return a, true
			}}}, f, about)
		}
	}},
	{"proof-about-another", "a standby that has shut a writer out has shut all out", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", believing(func(f *ownership.ControllerFacts) {
			for _, e := range f.Record.Replicas {
				if slices.ContainsFunc(f.Record.Writers, func(o ownership.Writer) bool { return o.Epoch == e.Fenced }) {
					f.Proofs = append(slices.Clip(f.Proofs), ownership.Proof{Kind: ownership.Reservation, Node: f.Record.Primary.Node, Epoch: f.Record.Epoch})
				}
			}
		}))
	}},
	{"detaches-a-writer", "the newest writer is the one that needs its attachment", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("surplus", alone).Alter("publish", alone).Alter("give way", alone)
	}},
	{"expires-under-a-writer", "a disk whose newest writer is gone is not used", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("expire", alone)
	}},
	{"takes-the-place", "whoever opens an epoch takes the place of the writer before", func(r *Rules) {
		r.Stage = r.Stage.Alter("take over", correcting(func(_ *ownership.NodeFacts, a *ownership.Action) {
			newest := lineage.Epoch{}
			for _, o := range a.Next.Writers {
				if o.Epoch.Number > newest.Number {
					newest = o.Epoch
				}
			}
			a.Next.Writers = slices.DeleteFunc(slices.Clone(a.Next.Writers), func(o ownership.Writer) bool { return o.Epoch == newest })
		}))
	}},
}
