package ledger

import (
	"maps"
	"slices"
)

// volumes is what is known of the Volumes and their PersistentVolumes: where data is, or is to be, or may
// still be. Of a claim it knows no more than the UID.
type volumes struct {
	shelf  *shelf
	byName map[string]*volume
	pvs    map[string]PVObject
	// remains are the names of the Volumes, by node, that have remains there.
	remains map[string]map[string]bool
}

func newVolumes(s *shelf) *volumes {
	return &volumes{shelf: s, byName: map[string]*volume{}, pvs: map[string]PVObject{}, remains: map[string]map[string]bool{}}
}

// of returns the record of a Volume, made if need be.
func (vs *volumes) of(name string) *volume {
	v := vs.byName[name]
	if v == nil {
		owner := Volume(name)
		v = &volume{owner: &owner}
		vs.byName[name] = v
	}
	return v
}

// tidy forgets a record that says nothing any more.
func (vs *volumes) tidy(v *volume) {
	if !v.present && len(v.pvs) == 0 && len(v.remains) == 0 {
		delete(vs.byName, v.owner.ID)
	}
}

// observe takes in a Volume, and returns its record, which is to be settled.
func (vs *volumes) observe(o VolumeObject) *volume {
	v := vs.of(o.Name)
	if v.growth > 0 && !slices.Equal(live(v.replicas), live(o.Replicas)) {
		// The growth was granted for other replicas. The remains of one that is
		// gone are charged without it.
		v.growth = 0
		v.post(vs.shelf)
	}
	vs.remain(v, v.leaving(vs.shelf, o))
	v.present, v.claim, v.class, v.capacity = true, o.Claim, vs.shelf.classes.id(o.Class), max(o.Capacity, 0)
	v.replicas = slices.Clone(o.Replicas)
	return v
}

// gone takes in that a Volume is gone, and returns its record, which is to be settled; nil if there is none.
func (vs *volumes) gone(name string, revision int64) *volume {
	v := vs.byName[name]
	if v == nil {
		return nil
	}
	remains := slices.Clone(v.remains)
	for _, at := range v.posted {
		if !v.leaves(at) && vs.shelf.unheard(at.node, revision) {
			remains = append(remains, remain{vs.shelf.stated(v.owner, at), revision, false})
		}
	}
	vs.remain(v, remains)
	v.present, v.replicas = false, nil
	return v
}

// observePV takes in a PersistentVolume that stands for no other Volume, and returns the record of its own,
// which is to be settled.
func (vs *volumes) observePV(o PVObject) *volume {
	vs.pvs[o.Name] = o
	v := vs.of(o.Volume)
	if at, known := slices.BinarySearch(v.pvs, o.Name); !known {
		v.pvs = slices.Insert(v.pvs, at, o.Name)
	}
	return v
}

// pvGone takes in that a PersistentVolume is gone, and returns the record of its Volume, which is to be
// settled; nil if there is none.
func (vs *volumes) pvGone(name string) *volume {
	o, known := vs.pvs[name]
	if !known {
		return nil
	}
	delete(vs.pvs, name)
	v := vs.of(o.Volume)
	v.pvs = slices.DeleteFunc(v.pvs, func(n string) bool { return n == name })
	return v
}

// remain replaces the volume's remains.
func (vs *volumes) remain(v *volume, next []remain) {
	for _, r := range v.remains {
		if delete(vs.remains[r.node], v.owner.ID); len(vs.remains[r.node]) == 0 {
			delete(vs.remains, r.node)
		}
	}
	v.remains = next
	for _, r := range next {
		if vs.remains[r.node] == nil {
			vs.remains[r.node] = map[string]bool{}
		}
		vs.remains[r.node][v.owner.ID] = true
	}
}

// left are the volumes that have remains on a node.
func (vs *volumes) left(node string) []*volume {
	var left []*volume
	for _, name := range slices.Sorted(maps.Keys(vs.remains[node])) {
		left = append(left, vs.byName[name])
	}
	return left
}

// claims are the UIDs of the claims that a volume belongs to: the one it was made for,
// and those its PersistentVolumes are bound to.
func (vs *volumes) claims(v *volume) []string {
	var claims []string
	add := func(uid string) {
		if uid != "" && !slices.Contains(claims, uid) {
			claims = append(claims, uid)
		}
	}
	if v.present || len(v.remains) > 0 {
		add(v.claim)
	}
	for _, name := range v.pvs {
		add(vs.pvs[name].Claim)
	}
	return claims
}

// volume is the record of a Volume, or of the remains of one, with its claims.
type volume struct {
	owner *Owner
	// present is whether the Volume object exists. While it does, it alone is
	// believed.
	present  bool
	claim    string
	class    int
	capacity int64
	replicas []Replica
	// growth is the size that the claim asks for by now and that was found to
	// fit; 0 for none.
	growth int64

	// pvs are the names of the PersistentVolumes that stand for it, in order.
	pvs []string
	// remains are the charges of replicas that are gone, or whose Volume was gone
	// before them. They stand until a report of the node takes that into account.
	remains []remain
	// linked are the claims whose accounts know of this volume: see accounts.link.
	linked []string
	posted []place
	// waits is the node whose next report may let the volume grow, if any.
	waits string
}

type remain struct {
	posting
	// revision at which the Volume, or the replica, went.
	revision int64
	// over is whether the node has said that nothing of it can be used again. A new
	// Volume of the name finds the remains that are not over.
	over bool
}

// target is the size a replica is to have.
func (v *volume) target(r *Replica) int64 {
	if r.State == Refused {
		return max(r.Actual, 0)
	}
	return max(v.capacity, r.Actual, v.growth, 0)
}

// replica turns a replica into its fact; false when it takes nothing.
func (v *volume) replica(r *Replica) (posting, bool) {
	bytes := v.target(r)
	if r.State == Gone || r.State == Refused && bytes == 0 {
		return posting{}, false
	}
	f := fact{owner: v.owner, bytes: bytes, class: int32(v.class), yields: r.Yields}
	f.carving = r.State == Pending || r.Actual > 0 && bytes > r.Actual
	f.unmade = r.State == Pending && r.Actual == 0
	if r.Taken > 0 && bytes <= r.Actual {
		f.charge, f.stated = min(r.Taken, unbounded), true
	}
	return posting{place{r.Node, r.Pool}, f}, true
}

// wanted lists the facts of a volume: those of the Volume's replicas, and its
// remains. Of two facts on one place the first counts.
func (v *volume) wanted() []posting {
	var facts []posting
	add := func(p posting) {
		if !slices.ContainsFunc(facts, func(f posting) bool { return f.place == p.place }) {
			facts = append(facts, p)
		}
	}
	for i := range v.replicas {
		if p, ok := v.replica(&v.replicas[i]); ok {
			add(p)
		}
	}
	for i := range v.remains {
		add(v.remains[i].posting)
	}
	return facts
}

// post brings the charges on the shelf in line with the record.
func (v *volume) post(s *shelf) { v.posted = s.post(v.posted, v.owner, v.wanted()) }

// leaving are the remains of the replicas that are gone by now. The new Volume
// takes over the remains of an earlier one of the name.
func (v *volume) leaving(s *shelf, o VolumeObject) []remain {
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
		} else if s.unheard(r.Node, o.Revision) {
			leaving = append(leaving, remain{s.stated(v.owner, at), o.Revision, true})
		}
	}
	return leaving
}

// leaves is whether the charge at a place is that of remains.
func (v *volume) leaves(at place) bool {
	return slices.ContainsFunc(v.remains, func(r remain) bool { return r.place == at })
}

// over is whether nothing at a place can be used again.
func (v *volume) over(at place) bool {
	return slices.ContainsFunc(v.remains, func(r remain) bool { return r.place == at && r.over })
}
