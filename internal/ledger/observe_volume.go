package ledger

import "slices"

// ObserveVolume takes in a Volume, new or changed. From now on the Volume says
// where the data is. It replaces the hold of its claim on the same node.
func (l *Ledger) ObserveVolume(o VolumeObject) {
	v := l.volume(o.Name)
	if v.growth > 0 && !slices.Equal(live(v.replicas), live(o.Replicas)) {
		// The growth was granted for other replicas. The remains of one that is
		// gone are charged without it.
		v.growth = 0
		v.posted = l.post(v.posted, v.owner, l.wanted(v))
	}
	l.remain(v, l.leaving(v, o))
	v.present, v.claim, v.class, v.capacity = true, o.Claim, l.classID(o.Class), max(o.Capacity, 0)
	v.replicas = slices.Clone(o.Replicas)
	l.settleVolume(v)
}

// leaving are the remains of the replicas that are gone by now. The new Volume
// takes over the remains of an earlier one of the name.
func (l *Ledger) leaving(v *volume, o VolumeObject) []remain {
	var leaving []remain
	for i := range o.Replicas {
		r := &o.Replicas[i]
		at := place{r.Node, r.Pool}
		if r.State != Gone || !slices.Contains(v.posted, at) {
			continue
		}
		if k := slices.IndexFunc(v.remains, func(r remain) bool { return r.place == at }); k >= 0 {
			left := v.remains[k]
			left.over = true
			leaving = append(leaving, left)
		} else if l.unheard(r.Node, o.Revision) {
			leaving = append(leaving, remain{l.stated(v, at), o.Revision, true})
		}
	}
	return leaving
}

// unheard is whether the report of a node, on which a volume is posted, is older than the revision.
// A node that has not reported has generation 0.
func (l *Ledger) unheard(node string, revision int64) bool {
	n := l.nodes[node]
	return n.generation > 0 && n.generation < revision
}

// stated is the volume's charge at a place, fixed so that it is not reckoned again.
func (l *Ledger) stated(v *volume, at place) posting {
	f := *l.nodes[at.node].book(at.pool).fact(v.owner)
	f.stated = true
	return posting{at, f}
}

// remain replaces the volume's remains.
func (l *Ledger) remain(v *volume, next []remain) {
	for _, r := range v.remains {
		delete(l.remains[r.node], v.owner.ID)
	}
	v.remains = next
	for _, r := range next {
		if l.remains[r.node] == nil {
			l.remains[r.node] = map[string]bool{}
		}
		l.remains[r.node][v.owner.ID] = true
	}
}

// ObserveVolumeGone takes in that a Volume is gone, at a revision (0 if that is not
// known). Replicas that were not gone before it stay charged until a report of
// their node takes the deletion into account. Only such a report counts their
// leftovers as foreign, or lists them.
func (l *Ledger) ObserveVolumeGone(name string, revision int64) {
	v := l.volumes[name]
	if v == nil {
		return
	}
	remains := slices.Clone(v.remains)
	for _, at := range v.posted {
		if !v.leaves(at) && l.unheard(at.node, revision) {
			remains = append(remains, remain{l.stated(v, at), revision, false})
		}
	}
	l.remain(v, remains)
	v.present, v.replicas = false, nil
	l.settleVolume(v)
}

// leaves is whether the charge at a place is that of remains.
func (v *volume) leaves(at place) bool {
	return slices.ContainsFunc(v.remains, func(r remain) bool { return r.place == at })
}

// over is whether nothing at a place can be used again.
func (v *volume) over(at place) bool {
	return slices.ContainsFunc(v.remains, func(r remain) bool { return r.place == at && r.over })
}

// ObservePV takes in a PersistentVolume, new or changed. It ties claims to volumes
// that were not made for them, so that the hold of such a claim is given back.
func (l *Ledger) ObservePV(o PVObject) {
	if before, known := l.pvs[o.Name]; known && before.Volume != o.Volume {
		l.ObservePVGone(o.Name)
	}
	l.pvs[o.Name] = o
	v := l.volume(o.Volume)
	if at, known := slices.BinarySearch(v.pvs, o.Name); !known {
		v.pvs = slices.Insert(v.pvs, at, o.Name)
	}
	l.settleVolume(v)
}

// ObservePVGone takes in that a PersistentVolume is gone.
func (l *Ledger) ObservePVGone(name string) {
	o, known := l.pvs[name]
	if !known {
		return
	}
	delete(l.pvs, name)
	v := l.volume(o.Volume)
	v.pvs = slices.DeleteFunc(v.pvs, func(n string) bool { return n == name })
	l.settleVolume(v)
}

// ObserveClaim takes in a PersistentVolumeClaim of one of Berth's classes, new or
// changed: which node was chosen for it, and what size it asks for by now.
func (l *Ledger) ObserveClaim(o ClaimObject) {
	a := l.account(Claim(o.UID))
	a.observed, a.class, a.bytes = true, l.classID(o.Class), max(o.Requested, 0)
	a.promised, a.bound = o.SelectedNode, o.Bound
	l.review(*a.owner)
}

// ObserveClaimGone takes in that a claim is gone. Its volume stays charged for as
// long as there is one, and a pod in flight keeps its hold until it is unreserved.
func (l *Ledger) ObserveClaimGone(uid string) {
	a := l.accounts[Claim(uid)]
	if a == nil {
		return
	}
	a.observed, a.promised, a.bound, a.bytes = false, "", false, 0
	l.review(*a.owner)
}
