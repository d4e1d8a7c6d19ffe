package explore

import (
	"slices"
	"time"

	"berth.dev/berth/internal/ownership"
)

// amending makes a controller's rule whose record is changed before it is written.
func amending(change func(f *ownership.ControllerFacts, a *ownership.Action)) func(controllerRule) controllerRule {
	return func(old controllerRule) controllerRule {
		return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
			a, ok := old(f)
			if ok && a.Verb == ownership.Record {
				change(f, &a)
			}
			return a, ok
		}
	}
}

// sharing makes a controller's rule that is asked about a disk shared in another way.
func sharing(alter func(s *ownership.Sharing)) func(controllerRule) controllerRule {
	return func(old controllerRule) controllerRule {
		return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
			g := *f
			g.Record = changed(f.Record, func(v *ownership.Volume) { alter(&v.Sharing) })
			a, ok := old(&g)
			if a.Next != nil {
				a.Next.Sharing = f.Record.Sharing
			}
			return a, ok
		}
	}
}

// agreed makes a controller's rule that takes the volume for one that fails over by itself.
func agreed(when func(*ownership.ControllerFacts) bool) func(controllerRule) controllerRule {
	return func(old controllerRule) controllerRule {
		return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
			g := *f
			g.Record = changed(f.Record, func(v *ownership.Volume) { v.Failover.Automatic = v.Failover.Automatic || when(f) })
			a, ok := old(&g)
			if a.Next != nil {
				a.Next.Failover = f.Record.Failover
			}
			return a, ok
		}
	}
}

// diskMutants are mistakes about reservations.
var diskMutants = []Mutant{
	{"any-session", "a key that the node used is a key that it uses", func(r *Rules) {
		own := seeing(func(f *ownership.NodeFacts) {
			if f.Record != nil && f.Disk.Holder == (ownership.Key{Node: f.Me, Epoch: f.Record.Epoch}).Raw() {
				f.Disk.Registered, f.Disk.Holding = f.Disk.Holder, true
			}
		})
		r.Stage, r.Tend = r.Stage.Alter("reservation", own), r.Tend.Alter("session", own)
	}},
	{"session-is-epoch", "a node whose session ended has lost its epoch", func(r *Rules) {
		lost := seeing(func(f *ownership.NodeFacts) {
			if !f.Disk.Holding {
				f.Disk.Holder = 0
			}
		})
		r.Stage, r.Tend = r.Stage.Alter("step down", lost), r.Tend.Alter("step down", lost).Without("session")
	}},
	{"any-target-is-proof", "a writer that was shut out stays shut out, whatever the target is", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", sharing(func(s *ownership.Sharing) { s.Persistent = true }))
	}},
	{"preempts-under-brake", "to shut a writer out promotes nobody, so the brake has no say", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", func(old controllerRule) controllerRule {
			return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
				a, ok := old(f)
				if !ok || a.Reason != ownership.BrakeHeld || !f.Record.Kind.Traits().Reserves {
					return a, ok
				}
				g := *f
				g.Nodes, g.Proofs, g.Watching = nil, nil, time.Hour
				if b, ok := old(&g); ok && b.Reason == ownership.FenceRequested {
					return b, true
				}
				return a, true
			}
		})
	}},
	{"fresh-eyes", "a controller that has just begun to watch sees how many nodes are lost", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", believing(func(f *ownership.ControllerFacts) { f.Watching = time.Hour }))
	}},
	{"manual-is-automatic", "a disk loses nothing when its writer is shut out, so no administrator has to agree", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", agreed(func(*ownership.ControllerFacts) bool { return true }))
	}},
	{"power-off-is-the-word", "a machine that is off for certain needs no word of an administrator", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", agreed(func(f *ownership.ControllerFacts) bool {
			return slices.ContainsFunc(f.Proofs, func(p ownership.Proof) bool {
				return p.Kind == ownership.PowerOff && p.Boot == f.Record.Primary.Boot
			})
		}))
	}},
	{"nobody-fences", "a writer that is to be shut out will go by itself", func(r *Rules) { r.Tend = r.Tend.Without("fence request") }},
	{"fence-keeps-clean", "a fence changes nothing about how the last unmount went", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", amending(func(f *ownership.ControllerFacts, a *ownership.Action) { a.Next.Clean = f.Record.Clean }))
	}},
	{"no-check", "a journal is replayed by the mount, nothing else is needed", func(r *Rules) {
		r.Stage = r.Stage.Alter("mount", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				a, ok := old(f)
				a.Check = false
				return a, ok
			}
		})
	}},
	{"boot-is-clean", "whoever releases in the boot in which it mounted has flushed everything", func(r *Rules) {
		r.Unstage = r.Unstage.Alter("release", seeing(func(f *ownership.NodeFacts) {
			if f.Record.Primary.Boot == f.Boot {
				f.Copy.Flushed = f.Record.Epoch
			}
		}))
	}},
}

// attachMutants are mistakes about attachments.
var attachMutants = []Mutant{
	{"never-attached-again", "an attachment that was collected is not missed", func(r *Rules) { r.Oversee = r.Oversee.Without("publish") }},
	{"expires-at-once", "a volume that nobody uses needs no attachment", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("expire", amending(func(f *ownership.ControllerFacts, a *ownership.Action) {
			if !a.Next.ExpireAt.IsZero() && f.Record.ExpireAt.IsZero() {
				a.Next.ExpireAt = f.Now
			}
		}))
	}},
	{"takeover-leaves-expiry", "a deadline that was set is kept", func(r *Rules) {
		r.Stage = r.Stage.Alter("take over", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				a, ok := old(f)
				if ok {
					a.Next.ExpireAt = f.Record.ExpireAt
				}
				return a, ok
			}
		})
	}},
	{"never-expires", "an attachment costs nothing", func(r *Rules) { r.Oversee = r.Oversee.Without("expire") }},
	{"expires-under-pod", "a volume without an owner is not used", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("expire", believing(func(f *ownership.ControllerFacts) { f.Wanted = nil }))
	}},
	{"all-yield", "a standby is worth less than any primary", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("give way", sharing(func(s *ownership.Sharing) { s.Yields = true }))
	}},
	{"more-shares", "the target will say when it has no share left", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("publish", sharing(func(s *ownership.Sharing) { s.MaxShares = maxNodes })).
			Alter("rebuild", sharing(func(s *ownership.Sharing) { s.MaxShares = maxNodes }))
	}},
	{"attaches-once", "an attach that was begun will end", func(r *Rules) {
		r.Tend = r.Tend.Alter("attach", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if e, _ := f.Record.Replica(f.Me); e.State == ownership.Failed {
					return ownership.Action{}, false
				}
				return old(f)
			}
		})
	}},
	{"failed-is-detached", "an attach that failed has left nothing behind", func(r *Rules) {
		clean := seeing(func(f *ownership.NodeFacts) {
			if f.Disk.Link == ownership.AttachFailed {
				f.Disk.Link = ownership.Detached
			}
		})
		r.Tend = r.Tend.Alter("leave", clean)
	}},
	{"leaving-is-gone", "a standby on a node that is cordoned is of no use, so it may go at once", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("surplus", believing(func(f *ownership.ControllerFacts) {
			f.Record = changed(f.Record, func(v *ownership.Volume) {
				for i := range v.Replicas {
					if slices.ContainsFunc(f.Nodes, func(m ownership.Machine) bool { return m.Name == v.Replicas[i].Node && m.Leaving }) {
						v.Factor = min(v.Factor, len(v.Replicas)-1)
					}
				}
			})
		})).Alter("surplus", amending(func(f *ownership.ControllerFacts, a *ownership.Action) { a.Next.Factor = f.Record.Factor }))
	}},
	{"extra-is-surplus", "a standby beyond the factor is one too many, whatever it was made for", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("surplus", believing(func(f *ownership.ControllerFacts) {
			f.Nodes = slices.Clone(f.Nodes)
			for i := range f.Nodes {
				f.Nodes[i].Leaving = false
			}
		}))
	}},
	{"detaches-the-pod", "the least useful attachment goes, whoever wants it", func(r *Rules) {
		blind := believing(func(f *ownership.ControllerFacts) { f.Wanted = nil })
		r.Oversee = r.Oversee.Alter("surplus", blind).Alter("give way", blind)
	}},
}
