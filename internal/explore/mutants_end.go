package explore

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// endMutants are mistakes about the end of a volume, of copies, of branches and of snapshots.
var endMutants = []Mutant{
	{"deletes-under-pod", "a volume that is deleted has no pod", func(r *Rules) {
		r.Tend = r.Tend.Alter("delete", seeing(func(f *ownership.NodeFacts) { f.Mounted = false }))
		r.Oversee = r.Oversee.Alter("delete", believing(func(f *ownership.ControllerFacts) {
			f.Record = changed(f.Record, func(v *ownership.Volume) { v.Primary = ownership.Primary{} })
		}))
		r.Oversee = r.Oversee.Alter("delete", amending(func(f *ownership.ControllerFacts, a *ownership.Action) { a.Next.Primary = f.Record.Primary }))
	}},
	{"unmount-asks-first", "nothing is let go of before the record says whose it is", func(r *Rules) {
		r.Unstage = append(ownership.Chain[ownership.NodeFacts]{{Name: "record first", Decide: r.Unstage.Rule("record read")}}, r.Unstage...)
	}},
	{"delete-in-part", "a volume that is deleted has no replicas on nodes that are away", func(r *Rules) { r.Tend = r.Tend.Without("delete") }},
	{"orphan-with-branch-goes", "a copy that nobody counts, and of which others have more, has nothing of its own", func(r *Rules) {
		r.Tend = r.Tend.Alter("collect", seeing(func(f *ownership.NodeFacts) {
			if f.Record == nil {
				return
			}
			f.Copy.Dirty = false
			for n := len(f.Copy.Points); n > 0 && !f.Record.Holds(f.Copy.Points[n-1]); n-- {
				f.Copy.Points = f.Copy.Points[:n-1]
			}
		}))
	}},
	{"branch-by-number", "a branch has the number of its last snapshot", func(r *Rules) {
		same := seeing(func(f *ownership.NodeFacts) {
			if !f.Copy.Preserved.IsZero() && f.Copy.Preserved.Seq == f.Copy.Tip().Seq {
				f.Copy.Preserved = f.Copy.Tip()
			}
		})
		r.Stage, r.Tend = r.Stage.Alter("put branch aside", same), r.Tend.Alter("put branch aside", same)
	}},
	{"one-branch", "a node that has put a branch aside has put its writes aside", func(r *Rules) {
		done := seeing(func(f *ownership.NodeFacts) {
			if !f.Copy.Preserved.IsZero() {
				f.Copy.Preserved = f.Copy.Tip()
			}
		})
		r.Stage, r.Tend = r.Stage.Alter("put branch aside", done), r.Tend.Alter("put branch aside", done)
	}},
	{"keeps-every-snapshot", "a snapshot costs nothing", func(r *Rules) { r.Tend = r.Tend.Without("retain") }},
	{"retains-for-the-awake", "a node that does not answer needs nothing", func(r *Rules) {
		r.Tend = r.Tend.Alter("retain", seeing(func(f *ownership.NodeFacts) {
			f.Record = changed(f.Record, func(v *ownership.Volume) {
				v.Replicas = nil
				for _, p := range f.Peers {
					if e, ok := f.Record.Replica(p.Node); ok {
						v.Replicas = append(v.Replicas, e)
					}
				}
			})
		}))
	}},
	{"holds-nothing", "a peer that was asked to keep a snapshot keeps it anyway", func(r *Rules) {
		r.Tend = r.Tend.Alter("retain", seeing(func(f *ownership.NodeFacts) { f.Copy.Holds = nil }))
	}},
	{"newest-by-number", "of two snapshots the one with the higher number is newer", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", byNumber).Alter("recovery point lost", byNumber)
	}},
	{"abandons-rebuild", "a replica that is lost comes back by itself", func(r *Rules) { r.Oversee = r.Oversee.Without("rebuild") }},
	{"keeps-surplus", "one replica more does no harm", func(r *Rules) { r.Oversee = r.Oversee.Without("surplus") }},
	{"keeps-gone", "an entry costs nothing", func(r *Rules) { r.Oversee = r.Oversee.Without("drop gone entries") }},
	{"keeps-recovery-point", "a recovery point whose holders are lost will come back", func(r *Rules) { r.Oversee = r.Oversee.Without("recovery point lost") }},
	{"never-reports", "what a node holds can be asked of it", func(r *Rules) { r.Tend = r.Tend.Without("report") }},
	{"never-follows", "a copy is brought up to date when it is needed", func(r *Rules) { r.Tend = r.Tend.Without("catch up") }},
}

// byNumber makes a controller's rule to which every snapshot of a peer is part of the volume.
func byNumber(old controllerRule) controllerRule {
	return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
		g := *f
		g.Peers = append([]ownership.Peer(nil), f.Peers...)
		for i := range g.Peers {
			p := highest(g.Peers[i].Copy.Points)
			if p.IsZero() || f.Record.Holds(p) {
				continue
			}
			p.Epoch = f.Record.Epoch
			g.Peers[i].Copy.Points = append([]lineage.Point(nil), p)
		}
		return old(&g)
	}
}
