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

// noUse has the node's entry say Syncing instead of Ready: its epoch is over, so no pod writes through its attachment.
// The entry does not say that the node has stopped (Replica.Unstaged). That would be a proof, and let another node in
// while the pod here may still have the disk open.
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
