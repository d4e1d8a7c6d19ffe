package explore

import (
	"slices"

	"berth.dev/berth/internal/ownership"
)

// Mutant is a plausible mistake: the product's rules with one of them wrong. The
// tests demand that the explorer finds every one; a rule that is not missed is
// either not needed or not explored.
type Mutant struct {
	Name string
	// Mistake is the wrong belief.
	Mistake string
	Break   func(*Rules)
}

// Rules returns the mutant's rules.
func (m Mutant) Rules() *Rules {
	r := Berth()
	m.Break(r)
	return r
}

// Mutants returns all of them.
func Mutants() []Mutant {
	var out []Mutant
	for _, group := range [][]Mutant{conductMutants, proofMutants, stageMutants, dataMutants, memoryMutants, sizeMutants, removalMutants, diskMutants, attachMutants, manyMutants, endMutants} {
		out = append(out, group...)
	}
	return out
}

// MutantNamed finds one; "berth" are the product's own rules.
func MutantNamed(name string) (Mutant, bool) {
	if name == "berth" {
		return Mutant{Name: name, Break: func(*Rules) {}}, true
	}
	for _, m := range Mutants() {
		if m.Name == name {
			return m, true
		}
	}
	return Mutant{}, false
}

type (
	nodeRule       = func(*ownership.NodeFacts) (ownership.Action, bool)
	controllerRule = func(*ownership.ControllerFacts) (ownership.Action, bool)
)

// always makes a rule that ignores the old one.
func always(rule nodeRule) func(nodeRule) nodeRule { return func(nodeRule) nodeRule { return rule } }

// seeing makes a rule that is asked about altered facts.
func seeing(alter func(f *ownership.NodeFacts)) func(nodeRule) nodeRule {
	return func(old nodeRule) nodeRule {
		return func(f *ownership.NodeFacts) (ownership.Action, bool) {
			g := *f
			alter(&g)
			return old(&g)
		}
	}
}

// believing makes a controller's rule that is asked about altered facts.
func believing(alter func(f *ownership.ControllerFacts)) func(controllerRule) controllerRule {
	return func(old controllerRule) controllerRule {
		return func(f *ownership.ControllerFacts) (ownership.Action, bool) {
			g := *f
			alter(&g)
			return old(&g)
		}
	}
}

// changed is the record with an edit, as a mutant writes it.
func changed(v *ownership.Volume, edit func(*ownership.Volume)) *ownership.Volume {
	next := *v
	next.Replicas = append([]ownership.Replica(nil), v.Replicas...)
	edit(&next)
	return &next
}

func setState(v *ownership.Volume, node string, s ownership.State) {
	for i := range v.Replicas {
		if v.Replicas[i].Node == node {
			v.Replicas[i].State = s
		}
	}
}

var conductMutants = []Mutant{
	{"cached-reads", "a watch's copy of the record is as good as reading it", func(r *Rules) { r.Conduct.CachedReads = true }},
	{"blind-writes", "the record may be written without comparing its version", func(r *Rules) { r.Conduct.BlindWrites = true }},
	{"epoch-without-id", "a number is enough to name an epoch", func(r *Rules) { r.Conduct.NoIDs = true }},
	{"old-answers", "what a peer said before the record was read is good enough", func(r *Rules) { r.Conduct.OldAnswers = true }},
	{"old-proofs", "evidence about a node stays true", func(r *Rules) { r.Conduct.OldProofs = true }},
	{"stored-is-heard", "a node that renews its lease knows that it does", func(r *Rules) { r.Conduct.StoredIsHeard = true }},
	{"counts-as-heard", "a renewal without an answer was not stored, and named no nodes", func(r *Rules) { r.Conduct.CountsAsHeard = true }},
	{"forgets-lapses", "an epoch in which nothing was written may be begun after any silence", func(r *Rules) { r.Conduct.ForgetsLapses = true }},
	{"blind-reserve", "the reservation may be taken whoever holds it by now", func(r *Rules) { r.Conduct.BlindReserve = true }},
	{"leaves-commands", "what the disk has not answered, it has not got", func(r *Rules) { r.Conduct.LeavesCommands = true }},
	{"frees-reservation", "a volume that nobody has mounted needs no reservation", func(r *Rules) { r.Conduct.FreesReservation = true }},
	{"age-of-tip", "what a node wrote last is what a failover to it goes on from", func(r *Rules) { r.Conduct.TipsAge = true }},
	{"word-of-mouth", "the recorded points are what the replicas hold", func(r *Rules) { r.Conduct.WordOfMouth = true }},
	{"forgetful-promises", "a promise may live in memory", func(r *Rules) { r.Conduct.ForgetfulPromises = true }},
	{"no-repair", "the record is always newer than what nodes know", func(r *Rules) {
		r.Stage, r.Tend = r.Stage.Without("repair record"), r.Tend.Without("repair record")
		r.Unstage, r.Oversee = r.Unstage.Without("repair record"), r.Oversee.Without("repair record")
	}},
}

// proven rewrites evidence of one kind into a proof.
func proven(kind ownership.ProofKind) func(*Rules) {
	return func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", believing(func(f *ownership.ControllerFacts) {
			proofs := append([]ownership.Proof(nil), f.Proofs...)
			for i := range proofs {
				if proofs[i].Kind == kind {
					proofs[i].Kind, proofs[i].Boot = ownership.PowerOff, f.Record.Primary.Boot
				}
			}
			f.Proofs = proofs
		}))
	}
}

var proofMutants = []Mutant{
	{"lease-is-proof", "a node whose lease has expired cannot write", proven(ownership.LeaseExpired)},
	{"silence-is-proof", "a node that does not answer cannot write", proven(ownership.Unreachable)},
	{"any-boot", "a power record about an earlier boot is about this one", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", believing(func(f *ownership.ControllerFacts) {
			f.Proofs = append([]ownership.Proof(nil), f.Proofs...)
			for i := range f.Proofs {
				f.Proofs[i].Boot = f.Record.Primary.Boot
			}
		}))
	}},
	{"any-epoch", "a node that was shut out once stays shut out", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", believing(func(f *ownership.ControllerFacts) {
			for _, e := range f.Record.Replicas {
				if !e.Fenced.IsZero() || e.Node == f.Record.Primary.Node && !e.Unstaged.IsZero() {
					p := ownership.Proof{Kind: ownership.PowerOff, Node: f.Record.Primary.Node, Boot: f.Record.Primary.Boot}
					f.Proofs = append(slices.Clip(f.Proofs), p)
				}
			}
		}))
	}},
	{"no-watchdog", "an agent that promises to stop needs nobody to stop it when it is dead", func(r *Rules) {
		contract := r.Contract
		r.Contract = func(l *ownership.Leases) (ownership.Proof, bool) {
			g := *l
			g.Watchdog, g.KubeletAlive = true, false
			return contract(&g)
		}
	}},
	{"no-majority", "a lease that nobody renews is a dead node, even if no lease is renewed", func(r *Rules) {
		contract := r.Contract
		r.Contract = func(l *ownership.Leases) (ownership.Proof, bool) {
			g := *l
			g.Steady = g.Nodes
			return contract(&g)
		}
	}},
	{"members-now", "the nodes that are left are all nodes", func(r *Rules) {
		contract := r.Contract
		r.Contract = func(l *ownership.Leases) (ownership.Proof, bool) {
			g := *l
			g.Named = g.Counted
			return contract(&g)
		}
	}},
	{"no-margin", "the controller need not wait longer than the node", func(r *Rules) {
		contract := r.Contract
		r.Contract = func(l *ownership.Leases) (ownership.Proof, bool) {
			g := *l
			g.Lapsed += ownership.SelfFenceAfter
			g.Steady = g.Nodes
			return contract(&g)
		}
	}},
	{"isolated-goes-on", "a node that reaches nobody cannot know, so it goes on", func(r *Rules) {
		r.MustStop = func(c *ownership.Contact) (bool, ownership.Why) {
			if len(c.Peers) == 0 {
				return false, ownership.Why{Reason: ownership.APIAway}
			}
			return ownership.MustStop(c)
		}
	}},
	{"no-brake", "many dead nodes are many dead nodes", func(r *Rules) {
		r.Oversee = r.Oversee.Alter("fence", believing(func(f *ownership.ControllerFacts) { f.Nodes = nil }))
	}},
	{"fence-by-hope", "asking for a fence is having it", func(r *Rules) {
		r.Tend = r.Tend.Alter("fence request", func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				a, ok := old(f)
				if ok && a.Verb == ownership.Reserve {
					a = ownership.Action{Verb: ownership.Record, Why: a.Why, Next: changed(f.Record, func(v *ownership.Volume) {
						for i := range v.Replicas {
							if v.Replicas[i].Node == f.Me {
								v.Replicas[i].Fenced = v.Epoch
							}
						}
					})}
				}
				return a, ok
			}
		})
	}},
}
