package oracle

import (
	"slices"

	"berth.dev/berth/internal/ledger"
)

// data is where data of Volumes is, is to be, or may still be. That follows from the objects, and from two
// things that the objects do not say any more.
type data struct {
	objects
	remains []remain
	// growth is the size that a claim's wish was granted, by Volume.
	growth map[string]int64

	// adopted counts the choices taken over from the ledger, by kind.
	adopted map[string]int
}

// remain is a replica that was gone, or whose Volume was gone, before its data.
type remain struct {
	volume, claim string
	fact          Fact
	revision      int64
}

// ObserveNode mirrors the ledger.
func (d *data) ObserveNode(r ledger.Report) {
	d.reports[r.Node] = r
	d.remains = slices.DeleteFunc(d.remains, func(x remain) bool {
		return x.fact.Node == r.Node && (r.Generation == 0 || x.revision <= r.Generation)
	})
}

// ObserveNodeGone mirrors the ledger.
func (d *data) ObserveNodeGone(name string) {
	delete(d.reports, name)
	d.remains = slices.DeleteFunc(d.remains, func(x remain) bool { return x.fact.Node == name })
}

// ObserveVolume mirrors the ledger.
func (d *data) ObserveVolume(o ledger.VolumeObject) {
	if !slices.Equal(live(d.volumes[o.Name]), live(o)) {
		delete(d.growth, o.Name)
	}
	var leaving []remain
	for _, f := range d.volumeFacts() {
		if f.Owner != ledger.Volume(o.Name) || !slices.ContainsFunc(o.Replicas, func(r ledger.Replica) bool {
			return r.Node == f.Node && r.Pool == f.Pool && r.State == ledger.Gone
		}) {
			continue
		}
		x := remain{o.Name, o.Claim, f, o.Revision}
		at := slices.IndexFunc(d.remains, func(x remain) bool {
			return x.volume == o.Name && x.fact.Node == f.Node && x.fact.Pool == f.Pool
		})
		if at >= 0 {
			x.revision = d.remains[at].revision
		} else if !d.unheard(f.Node, o.Revision) {
			continue
		}
		x.fact.stated, x.fact.over = true, true
		d.adopted["replicas that are gone"]++
		leaving = append(leaving, x)
	}
	d.volumes[o.Name] = o
	d.remains = append(slices.DeleteFunc(d.remains, func(x remain) bool { return x.volume == o.Name }), leaving...)
}

// ObserveVolumeGone mirrors the ledger.
func (d *data) ObserveVolumeGone(name string, revision int64) {
	o, present := d.volumes[name]
	if !present {
		return
	}
	// Items that the node only lists are left out: they may be of an earlier Volume
	// of this name, elsewhere.
	for _, f := range d.volumeFacts() {
		if f.Owner == ledger.Volume(name) && !d.remainsAt(name, f.Node, f.Pool) && d.unheard(f.Node, revision) {
			f.stated = true
			d.adopted["remains"]++
			d.remains = append(d.remains, remain{name, o.Claim, f, revision})
		}
	}
	delete(d.volumes, name)
	delete(d.growth, name)
}

// remainsAt is whether something remains of a volume at a place.
func (d *data) remainsAt(volume, node, pool string) bool {
	return slices.ContainsFunc(d.remains, func(x remain) bool {
		return x.volume == volume && x.fact.Node == node && x.fact.Pool == pool
	})
}

// live are the places that a growth was granted for.
func live(o ledger.VolumeObject) []string {
	var places []string
	for _, r := range o.Replicas {
		if r.State == ledger.Pending || r.State == ledger.Ready {
			places = append(places, r.Node+"/"+r.Pool)
		}
	}
	slices.Sort(places)
	return places
}

// claimsOf are the claims that a volume serves.
func (d *data) claimsOf(volume string) []string {
	var uids []string
	if v, present := d.volumes[volume]; present {
		uids = append(uids, v.Claim)
	}
	for _, x := range d.remains {
		if x.volume == volume {
			uids = append(uids, x.claim)
		}
	}
	for _, pv := range d.pvs {
		if pv.Volume == volume {
			uids = append(uids, pv.Claim)
		}
	}
	return uids
}

// durable is whether an object says where a claim's volume is.
func (d *data) durable(claim string) bool {
	for _, v := range d.volumes {
		if slices.Contains(d.claimsOf(v.Name), claim) {
			return true
		}
	}
	return false
}

// standsOn is whether a volume of the claim is charged on the node already.
func (d *data) standsOn(o ledger.Owner, node string) bool {
	if o.Kind != ledger.ByClaim {
		return false
	}
	for _, f := range d.volumeFacts() {
		if f.Node == node && !f.over && slices.Contains(d.claimsOf(f.Owner.ID), o.ID) {
			return true
		}
	}
	return false
}

// placedOn is whether an object says that a volume of the claim is on the node.
func (d *data) placedOn(o ledger.Owner, node string) bool {
	return o.Kind == ledger.ByClaim && slices.ContainsFunc(d.volumeFacts(), func(f Fact) bool {
		return f.Node == node && !f.over && d.placed(f.Owner.ID) && slices.Contains(d.claimsOf(f.Owner.ID), o.ID)
	})
}

// siblings is how many of the owners have a replica on each node.
func (d *data) siblings(owners []ledger.Owner) map[string]int {
	count := map[string]int{}
	for _, o := range owners {
		nodes := map[string]bool{}
		for name, v := range d.volumes {
			if o != ledger.Volume(name) && (o.Kind != ledger.ByClaim || !slices.Contains(d.claimsOf(name), o.ID)) {
				continue
			}
			for _, r := range v.Replicas {
				if r.State == ledger.Pending || r.State == ledger.Ready {
					nodes[r.Node] = true
				}
			}
		}
		for node := range nodes {
			count[node]++
		}
	}
	return count
}

// wish is the size that the claims of a volume ask for beyond its own; 0 is none.
func (d *data) wish(v ledger.VolumeObject) int64 {
	var wish int64
	for _, uid := range d.claimsOf(v.Name) {
		if c, exists := d.claims[uid]; exists {
			wish = max(wish, c.Requested)
		}
	}
	if wish <= v.Capacity {
		return 0
	}
	return wish
}

// grow takes over granted wishes, and returns the facts that grew.
func (d *data) grow(actual []Fact) []Fact {
	wishes := false
	for name, v := range d.volumes {
		wish := d.wish(v)
		d.growth[name] = min(d.growth[name], wish)
		wishes = wishes || wish > d.growth[name]
	}
	if !wishes {
		return nil
	}
	before := d.volumeFacts()
	var grown []Fact
	for _, f := range actual {
		v, present := d.volumes[f.Owner.ID]
		if f.Owner.Kind != ledger.ByVolume || !present || d.wish(v) == 0 || f.Bytes != d.wish(v) {
			continue
		}
		if d.growth[v.Name] < d.wish(v) {
			d.adopted["growths"]++
		}
		d.growth[v.Name] = d.wish(v)
	}
	for _, f := range d.volumeFacts() {
		at := slices.IndexFunc(before, func(g Fact) bool { return g.Owner == f.Owner && g.Node == f.Node && g.Pool == f.Pool })
		if at >= 0 && f.Charge > before[at].Charge {
			grown = append(grown, f)
		}
	}
	return grown
}
