package ledger

import "slices"

// ObserveNode takes in a node's report, whole. The error names pools that cannot
// be believed; the rest of the report counts all the same.
func (l *Ledger) ObserveNode(r Report) error {
	old, next, err := l.shelf.report(r)
	l.relisted(old, next)
	l.clear(r.Node, func(at remain) bool { return r.Generation == 0 || at.revision <= r.Generation })
	l.revisit(r.Node)
	return err
}

// ObserveNodeGone takes in that a node reports no more. Its charges stand: a node
// that is gone is no proof that its data is gone.
func (l *Ledger) ObserveNodeGone(name string) {
	if old := l.shelf.reportGone(name); old != nil {
		l.relisted(old)
		l.clear(name, func(remain) bool { return true })
	}
}

// relisted settles again the owner of every item that one of the nodes lists.
func (l *Ledger) relisted(nodes ...*Node) {
	for _, n := range nodes {
		for _, b := range n.books {
			for i := range b.Inventory {
				l.review(b.Inventory[i].Owner)
			}
		}
	}
}

// clear ends the remains on a node for which over is true: the node has reported
// about them since, or is gone.
func (l *Ledger) clear(node string, over func(remain) bool) {
	for _, v := range l.volumes.left(node) {
		l.volumes.remain(v, slices.DeleteFunc(slices.Clone(v.remains), func(r remain) bool { return r.node == node && over(r) }))
		l.settleVolume(v)
	}
}

// ObserveClass takes in a PoolClass, new or changed. A class that is not valid is
// refused, and stays as it was before.
func (l *Ledger) ObserveClass(c Class) error {
	if err := c.Check(); err != nil {
		return err
	}
	if _, now := l.classes.find(c.Name); now != nil && now.equal(&c) {
		return nil
	}
	l.shelf.setClass(l.classes.id(c.Name), &c)
	l.revisitAll()
	return nil
}

// ObserveClassGone takes in that a PoolClass is gone: nothing new fits it.
func (l *Ledger) ObserveClassGone(name string) {
	if id, known := l.classes.find(name); known != nil {
		l.shelf.setClass(id, nil)
		l.revisitAll()
	}
}

// ObserveVolume takes in a Volume, new or changed. From now on the Volume says
// where the data is. It replaces the hold of its claim on the same node.
func (l *Ledger) ObserveVolume(o VolumeObject) { l.settleVolume(l.volumes.observe(o)) }

// ObserveVolumeGone takes in that a Volume is gone, at a revision (0 if that is not
// known). Replicas that were not gone before it stay charged until a report of
// their node takes the deletion into account. Only such a report counts their
// leftovers as foreign, or lists them.
func (l *Ledger) ObserveVolumeGone(name string, revision int64) {
	if v := l.volumes.gone(name, revision); v != nil {
		l.settleVolume(v)
	}
}

// ObservePV takes in a PersistentVolume, new or changed. It ties claims to volumes
// that were not made for them, so that the hold of such a claim is given back.
func (l *Ledger) ObservePV(o PVObject) {
	if before, known := l.volumes.pvs[o.Name]; known && before.Volume != o.Volume {
		l.ObservePVGone(o.Name)
	}
	l.settleVolume(l.volumes.observePV(o))
}

// ObservePVGone takes in that a PersistentVolume is gone.
func (l *Ledger) ObservePVGone(name string) {
	if v := l.volumes.pvGone(name); v != nil {
		l.settleVolume(v)
	}
}

// ObserveClaim takes in a PersistentVolumeClaim of one of Berth's classes, new or
// changed: which node was chosen for it, and what size it asks for by now.
func (l *Ledger) ObserveClaim(o ClaimObject) {
	a := l.accounts.of(Claim(o.UID))
	a.observed, a.class, a.bytes = true, l.classes.id(o.Class), max(o.Requested, 0)
	a.promised, a.bound = o.SelectedNode, o.Bound
	l.review(*a.owner)
}

// ObserveClaimGone takes in that a claim is gone. Its volume stays charged for as
// long as there is one, and a pod in flight keeps its hold until it is unreserved.
func (l *Ledger) ObserveClaimGone(uid string) {
	a := l.accounts.byOwner[Claim(uid)]
	if a == nil {
		return
	}
	a.observed, a.promised, a.bound, a.bytes = false, "", false, 0
	l.review(*a.owner)
}
