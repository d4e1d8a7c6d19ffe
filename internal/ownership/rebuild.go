package ownership

import "berth.dev/berth/internal/lineage"

// rebuild asks for one more replica when one has been missing for long, or is attached to a node that is
// leaving: if that is the primary's, the volume has where to go before its pods are evicted. It
// waits, because a node that comes back needs an increment and a new copy needs
// everything; and it stops altogether while many nodes look lost. It leaves a share to each node on which a pod
// waits and that can be served: publish would have the new standby make room for that node at once.
func rebuild(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if v.Deleting || v.Kind.Traits().Attaches && v.Primary.Phase != Active {
		return next()
	}
	present := 0
	for i := range v.Replicas {
		if e := &v.Replicas[i]; e.State.counts() && !missing(f, e) && !failedForGood(e) && !f.leaving(e) {
			present++
		}
	}
	if present >= v.Factor {
		return next()
	}
	if f.braked() {
		return wait(Why{Reason: BrakeHeld})
	}
	node, ok := place(f)
	if !ok {
		return next()
	}
	if sharesTaken(v) {
		return makeRoom(f, failedForGood, Why{Reason: AttachmentFailed})
	}
	if v.Kind.Traits().Attaches && len(v.Replicas)+f.unserved() >= v.Sharing.MaxShares {
		return next()
	}
	return record(v.with(func(next *Volume) { next.entry(node).State = Reserved }), Why{Reason: TooFewReplicas, Node: node, Count: present})
}

// place is a node for one more replica.
func place(f *ControllerFacts) (string, bool) {
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if _, taken := f.Record.Replica(n.Name); taken || n.Lost || !n.Fits || f.Record.Kind.Traits().Attaches && n.Slots <= 0 {
			continue
		}
		return n.Name, true
	}
	return "", false
}

func missing(f *ControllerFacts, e *Replica) bool {
	n := f.node(e.Node)
	return n.Lost && n.LostFor >= RebuildDelay
}

// surplus begins the removal of one replica too many: the first phase. The least
// useful goes first, and only if the others, asked now, are enough without it.
func surplus(f *ControllerFacts) (Action, bool) {
	v, victim := f.Record, -1
	for i := range v.Replicas {
		e := &v.Replicas[i]
		if e.State.counts() && !v.ownedBy(e.Node) && !v.executes(e.Node) && !f.wanted(e.Node) && (victim < 0 || lessUseful(f, e, &v.Replicas[victim])) {
			victim = i
		}
	}
	if victim < 0 || !tooMany(f, &v.Replicas[victim]) {
		return next()
	}
	e := v.Replicas[victim]
	var need lineage.Point
	if v.Holds(e.Point) {
		need = e.Point
	}
	if n, ok := enough(v, e.Node, need, f.Peers); v.Kind.Traits().Data && !ok {
		return wait(Why{Reason: TooFewOthers, Node: e.Node, Count: n})
	}
	return record(v.with(func(n *Volume) { n.entry(e.Node).State = Removing }), Why{Reason: TooManyReplicas, Node: e.Node})
}

// tooMany tells whether the volume has enough without the victim. Those on nodes that are leaving are no
// others, nor is a writer that is missing and cannot be removed: rebuild would replace it again and again. One of them that works goes only when as many as shall be are ready on nodes that stay: it may still
// have to shut a writer out.
func tooMany(f *ControllerFacts, victim *Replica) bool {
	v, others, ready := f.Record, 0, 0
	for i := range v.Replicas {
		if e := &v.Replicas[i]; e.Node != victim.Node && e.State.counts() && !f.leaving(e) && !(v.ownedBy(e.Node) && missing(f, e)) {
			others++
			if e.State == Ready && !f.node(e.Node).Lost {
				ready++
			}
		}
	}
	if f.leaving(victim) && victim.State == Ready {
		others = ready
	}
	return others >= v.Factor
}

// lessUseful orders the victims: dead, on a node that is leaving, not ready, most behind, then by name.
func lessUseful(f *ControllerFacts, a, b *Replica) bool {
	if x, y := f.node(a.Node).Lost, f.node(b.Node).Lost; x != y {
		return x
	}
	if x, y := f.leaving(a), f.leaving(b); x != y {
		return x
	}
	if x, y := a.State == Ready, b.State == Ready; x != y {
		return y
	}
	if a.Point.Seq != b.Point.Seq {
		return a.Point.Seq < b.Point.Seq
	}
	return a.Node > b.Node
}
