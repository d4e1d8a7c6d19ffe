package explore

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

var stageMutants = []Mutant{
	{"publish-owns", "a pod that was sent here makes this node the owner", func(r *Rules) {
		r.Stage = r.Stage.Without("primary elsewhere").Without("replica ready").
			Alter("take over", seeing(func(f *ownership.NodeFacts) {
				if f.Record.Primary.Node != f.Me {
					f.Record = changed(f.Record, func(v *ownership.Volume) { v.Primary.Phase = ownership.Released })
				}
			}))
	}},
	{"publish-without-epoch", "being sent here is enough, an epoch need not be taken", func(r *Rules) {
		r.Stage = r.Stage.Without("restart").Without("primary elsewhere").Without("take over").Without("promise").
			Without("open copy").Without("activate").Without("reservation")
	}},
	{"own-tip", "this node's newest snapshot is good enough to go on from", func(r *Rules) {
		r.Stage = r.Stage.Without("recovery point near").Without("catch up").Without("put branch aside").Without("replica ready")
	}},
	{"continue-after-restart", "a node that reboots may go on in its epoch", func(r *Rules) { r.Stage = r.Stage.Without("restart") }},
	{"lapsed-lease-stages", "a node that slept through its lease may take over at once", func(r *Rules) {
		r.Stage = r.Stage.Alter("node in service", seeing(func(f *ownership.NodeFacts) { f.SinceRenewal = 0 }))
	}},
	{"tainted-node-stages", "an out-of-service taint is for the scheduler only", func(r *Rules) {
		r.Stage = r.Stage.Alter("node in service", seeing(func(f *ownership.NodeFacts) { f.OutOfService = false }))
	}},
	{"no-reservation", "the record alone keeps others from writing", func(r *Rules) {
		r.Stage = r.Stage.Without("reservation")
	}},
	{"preempt-anybody", "whoever stages may take the reservation from anybody", func(r *Rules) {
		r.Stage = r.Stage.Alter("reservation", seeing(func(f *ownership.NodeFacts) {
			if mine := (ownership.Key{Node: f.Me, Epoch: f.Record.Epoch}); f.Disk.Holder != mine.Raw() {
				f.Disk.Holder = 0
			}
		}))
		r.Conduct.BlindReserve = true
	}},
	{"no-final-snapshot", "unmounting is enough, the next interval takes the snapshot", func(r *Rules) {
		r.Unstage = r.Unstage.Without("final snapshot")
	}},
	{"release-before-unmount", "the record may be released while the last writes are flushed", func(r *Rules) {
		release := r.Unstage.Rule("release")
		r.Unstage = r.Unstage.Alter("close copy", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				v := f.Record
				if v != nil && v.Primary.Phase == ownership.Active && v.Primary.Node == f.Me && v.Epoch == f.Copy.Opened {
					return release(f)
				}
				return old(f)
			}
		})
	}},
	{"phase-tells-written", "an epoch that the record calls Preparing has not been written", func(r *Rules) {
		r.Unstage = r.Unstage.Alter("release", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				a, ok := old(f)
				if f.Record.Primary.Phase == ownership.Preparing {
					a.Next.RecoveryPoint = f.Record.RecoveryPoint
				}
				return a, ok
			}
		})
	}},
	{"mounted-is-wanted", "a superseded writer may go on until its pod ends", func(r *Rules) {
		r.Stage, r.Tend = r.Stage.Without("step down"), r.Tend.Without("step down")
	}},
	{"nobody-gives-up", "an epoch that nobody uses ends by itself", func(r *Rules) { r.Tend = r.Tend.Without("give up") }},
	{"admits-before-closing", "a writer that was fenced cannot write, so it may say that it has stopped", func(r *Rules) {
		r.Tend = r.Tend.Alter("admit fence", seeing(func(f *ownership.NodeFacts) {
			f.Copy.Closed = f.Record.Epoch
		}))
	}},
	{"lost-copy-released", "a writer whose copy is gone releases what it has now", func(r *Rules) {
		r.Unstage = r.Unstage.Without("lost copy").Alter("release", seeing(func(f *ownership.NodeFacts) {
			if f.Record.Primary.Phase == ownership.Active {
				f.Copy.Opened = f.Record.Epoch
			}
		}))
	}},
}

// highest is the newest point by number alone.
func highest(points []lineage.Point) (best lineage.Point) {
	for _, p := range points {
		if p.Seq > best.Seq {
			best = p
		}
	}
	return best
}

var dataMutants = []Mutant{
	{"highest-number-wins", "the highest snapshot number is the newest", func(r *Rules) {
		r.Tend = r.Tend.Without("put branch aside").Alter("catch up", always(func(f *ownership.NodeFacts) (ownership.Action, bool) {
			for _, p := range f.Peers {
				if to := highest(p.Copy.Points); to.Seq > highest(f.Copy.Points).Seq && !f.Mounted && !f.Copy.Dirty {
					return ownership.Action{Verb: ownership.Pull, From: p.Node, Base: lineage.Common(f.Copy.Points, p.Copy.Points), To: to}, true
				}
			}
			return ownership.Action{}, false
		}))
		r.Receive = func(c *ownership.Copy, mounted bool, s *ownership.Stream) (bool, ownership.Why) {
			return !mounted && !c.Dirty && s.Target.Seq > c.Tip().Seq, ownership.Why{}
		}
	}},
	{"any-base", "an increment fits on whatever is newest here", func(r *Rules) {
		r.Receive = func(c *ownership.Copy, mounted bool, s *ownership.Stream) (bool, ownership.Why) {
			g := *s
			if !g.Base.IsZero() {
				g.Base = c.Tip()
			}
			return ownership.Receive(c, mounted, &g)
		}
	}},
	{"any-epoch-streams", "data is data, whatever the sender's epoch", func(r *Rules) {
		r.Receive = func(c *ownership.Copy, mounted bool, s *ownership.Stream) (bool, ownership.Why) {
			d := *c
			d.Promise.Epoch = s.Promise.Epoch
			return ownership.Receive(&d, mounted, s)
		}
	}},
	{"full-copy-over-all", "a full copy may replace whatever is here", func(r *Rules) {
		r.Receive = func(c *ownership.Copy, mounted bool, s *ownership.Stream) (bool, ownership.Why) {
			d := *c
			d.Preserved = d.Tip()
			return ownership.Receive(&d, mounted, s)
		}
		r.Tend = r.Tend.Alter("put branch aside", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if a, ok := old(f); ok && a.Verb != ownership.Preserve {
					return a, ok
				}
				return ownership.Action{}, false
			}
		})
	}},
	{"roll-back-without-keeping", "what an old primary wrote alone is worth nothing", func(r *Rules) {
		forget := seeing(func(f *ownership.NodeFacts) { f.Copy.Preserved = f.Copy.Tip() })
		r.Stage, r.Tend = r.Stage.Alter("put branch aside", forget), r.Tend.Alter("put branch aside", forget)
	}},
	{"branch-stays", "an old primary may keep what it wrote alone", func(r *Rules) {
		r.Stage, r.Tend = r.Stage.Without("put branch aside"), r.Tend.Without("put branch aside")
		r.Stage = r.Stage.Without("catch up")
	}},
	{"recovery-point-rises", "a better copy that turns up after the fence is better", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("recovery point lost", always2(raise))
	}},
	{"silent-loss", "a failover need not say what it gave up", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", func(old controllerRule) controllerRule {
			return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
				a, ok := old(f)
				if ok && a.Verb == ownership.Record {
					a.Next.Losses = f.Record.Losses
				}
				return a, ok
			}
		})
	}},
	{"any-loss", "a failover is worth any loss", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", believing(func(f *ownership.ControllerFacts) {
			f.Record = changed(f.Record, func(v *ownership.Volume) {
				v.Failover.Automatic, v.Failover.MaxDataLoss = true, 1<<62
			})
		}))
	}},
	{"newest-only", "only the newest snapshot is worth keeping", func(r *Rules) {
		r.Tend = r.Tend.Alter("retain", always(func(f *ownership.NodeFacts) (ownership.Action, bool) {
			if n := len(f.Copy.Points); n > 1 {
				return ownership.Action{Verb: ownership.Drop, Points: f.Copy.Points[:n-1]}, true
			}
			return ownership.Action{}, false
		}))
	}},
}

func always2(rule controllerRule) func(controllerRule) controllerRule {
	return func(controllerRule) controllerRule { return rule }
}

// raise moves the recovery point of a fenced volume up to the best copy seen.
func raise(f *ownership.ControllerFacts) (ownership.Action, bool) {
	v := f.Record
	if v.Primary.Phase != ownership.Fenced {
		return ownership.Action{}, false
	}
	best := v.RecoveryPoint
	for _, p := range f.Peers {
		for _, at := range p.Copy.Points {
			if at.Seq > best.Seq && v.Lineage.Contains(at) {
				best = at
			}
		}
	}
	if best == v.RecoveryPoint {
		return ownership.Action{}, false
	}
	return ownership.Action{Verb: ownership.Record, Next: changed(v, func(n *ownership.Volume) { n.RecoveryPoint = best })}, true
}
