package ownership

// HeldRules answer "what next?" while a pod has the volume in an epoch that its node gave up. Nothing begins here
// before that pod has ended: the next mount would be of the same filesystem, which may have shut itself down. The pod
// has a dead mount and does not end by itself, and a node ends no pods. So the record says that the attachment is of no
// use. Controllers see that change, ask the node, and end the pods of an epoch that it gave up.
var HeldRules = Chain[NodeFacts]{
	{"record read", recordRead},
	{"repair record", repairRecord},
	{"no use", noUse},
	{"still held", stillHeld},
}

// noUse corrects the entry of an attachment through which nobody writes. It is no word that the node has stopped
// (Replica.Unstaged), which would let another node in: that the pod cannot write is likely, and nothing proves it.
func noUse(f *NodeFacts) (Action, bool) {
	v := f.Record
	if v == nil || !f.traits().Attaches || !v.ownedBy(f.Me) || !f.Copy.GaveUp(v.Epoch) {
		return next()
	}
	if e, _ := v.Replica(f.Me); e.State != Ready {
		return next()
	}
	return record(v.with(func(n *Volume) { n.entry(f.Me).State = Syncing }), Why{Reason: StillHeld, Node: f.Me, Epoch: v.Epoch})
}

func stillHeld(f *NodeFacts) (Action, bool) {
	return wait(Why{Reason: StillHeld, Node: f.Me, Epoch: f.Copy.Opened})
}

// HasUselessOwner tells whether a node that owns an epoch says that nobody writes through its attachment. Only the
// node itself says whether it gave the epoch up.
func (v *Volume) HasUselessOwner() bool {
	for _, node := range v.Writing() {
		if e, has := v.Replica(node); has && e.State != Ready && v.Kind.Traits().Attaches {
			return true
		}
	}
	return false
}
