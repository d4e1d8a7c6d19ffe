package explore

import (
	"math/bits"
	"time"

	"berth.dev/berth/internal/ownership"
)

// controllerStep lets controller c take one step, like agentStep. Both
// controllers may believe to lead: leader election is no fencing.
func (w overseers) controllerStep(c int, stale uint8) bool {
	ctl, who := &w.ctl[c], maxNodes+c
	if p := ctl.pending; p != nil {
		ctl.pending = nil
		w.tell(who, "carries out", p.action)
		w.write(who, p)
		return true
	}
	if !w.linked(who, api) {
		return false
	}
	read := w.read(stale)
	if read.volume == nil {
		return false
	}
	f := w.controllerFacts(c, read)
	a := w.rules.Each(w.rules.Oversee, f, func(f *ownership.ControllerFacts, _ string) { w.about(c, f) })
	if a.Verb != ownership.Nothing {
		w.tell(who, "decides", a)
	}
	if a.Reason == ownership.PromotionBlocked {
		ctl.blocked = a.Point
	}
	if a.Verb != ownership.Record {
		return false
	}
	p := &pending{action: a, read: read, ignored: w.controllerKnowsMore(who, read.volume)}
	p.ordered = w.recordJudge().ordered(read.volume.On(changing(read.volume, a.Next)))
	p.brake = !p.ordered && w.recordJudge().massLoss(c)
	for i := range w.cfg.Nodes {
		if w.nodes[i].wanted {
			p.wanted |= 1 << i
		}
		if w.nodes[i].cordoned {
			p.leaving |= 1 << i
		}
		if w.cfg.Kind.Traits().Attaches && w.recordJudge().outOfSight(c, i) {
			p.unseen |= 1 << i
		}
		if w.nodes[i].deleted {
			p.deleted |= p.unseen & (1 << i)
		}
	}
	p.waiting, p.unused, p.decided = w.slots.waiting, w.now-w.truth.usedAt, w.now
	if c, ok := w.truth.data(a.Point); ok {
		p.age = w.ageOf(c)
	}
	if stale&atOnce != 0 {
		w.tell(who, "carries out", p.action)
		w.write(who, p)
		return true
	}
	ctl.pending = p
	return true
}

func (w overseers) controllerKnowsMore(who int, v *ownership.Volume) bool {
	if knows(v.Lineage, w.truth.epoch) {
		return false
	}
	for j := 0; j < w.cfg.Nodes; j++ {
		if w.answers(who, j) && knows(w.nodes[j].copy.Promise.Lineage, w.truth.epoch) {
			return true
		}
	}
	return false
}

func (w overseers) controllerFacts(c int, read *version) *ownership.ControllerFacts {
	who, v := maxNodes+c, read.volume
	f := &w.scratch.controller
	*f = ownership.ControllerFacts{Now: w.clock(), Record: v, SuspectFor: w.ctl[c].suspect, Watching: w.ctl[c].watching}
	if w.cfg.Kind.Traits().Attaches {
		f.Wanted = w.wantedNodes(w.scratch.wanted[:0])
		w.diskJudge().noteWish(v, len(f.Wanted))
	}
	f.Peers = w.scratch.peers[:0]
	if w.rules.Conduct.WordOfMouth {
		f.Peers = hearsay(v, "")
	}
	f.Nodes = w.scratch.machines[:0]
	for j := 0; j < w.cfg.Nodes; j++ {
		f.Nodes = append(f.Nodes, ownership.Machine{Name: names[j], Unlisted: w.nodes[j].deleted, Lost: w.lost(c, j), LostFor: w.ctl[c].lostFor[j],
			Fits: !w.nodes[j].tainted && !w.nodes[j].deleted && !w.nodes[j].cordoned, Leaving: w.nodes[j].cordoned})
		w.slotFacts(&f.Nodes[j], v, j)
		if !w.rules.Conduct.WordOfMouth && w.answers(who, j) {
			f.Peers = append(f.Peers, w.probe(j, v))
		}
	}
	return f
}

// about adds what a controller finds out about a writer.
func (w overseers) about(c int, f *ownership.ControllerFacts) {
	if p := indexOf(f.Record.Primary.Node); p >= 0 && f.Record.Primary.Phase.Open() {
		f.Witnesses = w.witnesses(c, p)
		f.Proofs = w.proofs(c, p)
	}
}

// probe is replica j's answer to the controller.
func (w overseers) probe(j int, v *ownership.Volume) ownership.Peer {
	n := &w.nodes[j]
	p := ownership.Peer{Node: names[j], Copy: n.copy}
	newest := v.Newest(n.copy.Points)
	_, p.Confirmed = w.rules.Confirm(&n.copy, "", newest, w.clock())
	if w.rules.Conduct.TipsAge {
		newest = n.copy.Tip()
	}
	for k := range n.copy.Points {
		if n.copy.Points[k] == newest {
			p.Age = w.ageOf(n.data[k])
		}
	}
	return p
}

// ageOf is how long ago the first write happened that c does not have.
func (w overseers) ageOf(c *content) time.Duration {
	if w.truth.last == c {
		return 0
	}
	return time.Duration(w.truth.last.length()-min(w.truth.last.length(), c.length())) * writeWorth
}

// writeWorth makes the age of a snapshot a matter of writes and not of the
// clock: it keeps the worlds of the exhaustive mode finite.
const writeWorth = 2 * time.Minute

// witnesses are the controller, the other nodes that answer it, and the lease.
func (w overseers) witnesses(c, p int) []ownership.Witness {
	who := maxNodes + c
	out := w.scratch.witnesses[:0]
	out = append(out, ownership.Witness{Name: names[who], Alive: w.answers(who, p)},
		ownership.Witness{Name: "lease", Alive: w.ctl[c].lapsed[p] < leaseDuration})
	for j := 0; j < w.cfg.Nodes; j++ {
		if j != p && w.answers(who, j) {
			out = append(out, ownership.Witness{Name: names[j], Alive: w.answers(j, p)})
		}
	}
	return out
}

func (w overseers) lost(c, j int) bool { return ownership.Suspected(w.witnesses(c, j)) }

// proofs gathers evidence about node p, after the record was read.
func (w overseers) proofs(c, p int) []ownership.Proof {
	n, ctl := &w.nodes[p], &w.ctl[c]
	var out []ownership.Proof
	if n.poweroff > 0 {
		out = append(out, ownership.Proof{Kind: ownership.PowerOff, Node: names[p], Boot: bootNames[n.poweroff]})
	}
	if n.tainted {
		out = append(out, ownership.Proof{Kind: ownership.OutOfService, Node: names[p]})
	}
	if proof, ok := w.rules.Contract(w.leases(c, p)); ok {
		out = append(out, proof)
	}
	if ctl.lapsed[p] >= leaseDuration {
		out = append(out, ownership.Proof{Kind: ownership.LeaseExpired, Node: names[p]})
	}
	if !w.answers(maxNodes+c, p) {
		out = append(out, ownership.Proof{Kind: ownership.Unreachable, Node: names[p]})
	}
	if w.rules.Conduct.OldProofs {
		out = append(out, ctl.oldProofs...)
		ctl.oldProofs = append([]ownership.Proof(nil), out...)
	}
	return out
}

// sets are all sets of nodes, each with its nodes and its name. A set of nodes as bits is its index.
var sets = func() (out [1 << maxNodes]struct {
	nodes []string
	name  ownership.Members
}) {
	for set := range out {
		for j := range maxNodes {
			if set&(1<<j) != 0 {
				out[set].nodes = append(out[set].nodes, names[j])
			}
		}
		if set > 0 {
			out[set].name = ownership.MembersOf(out[set].nodes[0], out[set].nodes)
		}
	}
	return out
}()

func (w overseers) leases(c, p int) *ownership.Leases {
	ctl, members := &w.ctl[c], w.agents().members(p)
	l := &ownership.Leases{Suspect: names[p], Boot: bootNames[w.nodes[p].leased], Watchdog: w.cfg.Watchdog,
		KubeletAlive: w.nodes[p].sinceKubelet < leaseDuration, Lapsed: ctl.lapsed[p],
		Named: sets[w.nodes[p].members].name, Counted: sets[members].name, Nodes: bits.OnesCount8(members)}
	for j := 0; j < w.cfg.Nodes; j++ {
		if j != p && !w.nodes[j].deleted && ctl.steady[j] >= ownership.SelfFenceAfter+ownership.SelfFenceMargin {
			l.Steady++
		}
	}
	return l
}
