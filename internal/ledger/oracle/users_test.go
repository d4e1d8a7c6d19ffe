package oracle

import (
	"math"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// The acts of users and stock controllers.

var classNames = []string{"fast", "fast", "bulk", "raid", "thin", "disk", "lun"}

// impossible is more than any pool has.
const impossible = 1000 * gib

func (w *world) size(a byte) int64 {
	if a == 255 && !w.calm {
		return math.MaxInt64
	}
	return int64(a%20+1)*gib/4 - int64(a%3)
}

func (w *world) class(a byte) string {
	if w.calm {
		return classNames[int(a)%4]
	}
	if a == 77 {
		return "unheard-of"
	}
	return classNames[int(a)%len(classNames)]
}

func (w *world) claimComes(a, b, _ byte) {
	c := &claim{ledger.ClaimObject{UID: w.name("c"), Class: w.class(a), Requested: w.size(b)}}
	w.trace("the claim %s comes: %d of %s", c.UID, c.Requested, c.Class)
	w.claims[c.UID], w.newest = c, c.UID
	w.emitClaim(c)
}

// podComes makes a pod with up to three claims, new or perhaps shared with other
// pods, and up to two inline volumes.
func (w *world) podComes(a, b, c byte) {
	p := &pod{PodObject: ledger.PodObject{UID: w.name("p"), Namespace: "shop"}}
	for i := range a % 4 {
		if b%3 != 0 {
			class := b / 3 // mostly all of one class: others may be on another node
			if c%4 == 0 {
				class += i * 29
			}
			w.claimComes(class, c+i*13, 0)
			p.claims = append(p.claims, w.newest)
			continue
		}
		x, found := choose(w.claims, b+i*7, func(x *claim) bool { return !slices.Contains(p.claims, x.UID) && (!w.calm || !w.atWork(x.UID)) })
		if found {
			p.claims = append(p.claims, x.UID)
		}
	}
	for i := range c % 3 {
		if !w.calm {
			v := ledger.InlineVolume{Name: string('a' + rune(i)), Class: classNames[int(c/3)%4+1], Bytes: int64(c%5+1) * gib / 2}
			if c%16 == 7 {
				v.Bytes = impossible
			}
			p.Inline = append(p.Inline, v)
		}
	}
	w.trace("the pod %s comes: claims %v, %d inline volumes", p.UID, p.claims, len(p.Inline))
	w.pods[p.UID] = p
	w.emitPod(p)
}

// atWork is whether some pod that lives uses the claim.
func (w *world) atWork(claim string) bool {
	for _, p := range w.pods {
		if !p.gone && slices.Contains(p.claims, claim) {
			return true
		}
	}
	return false
}

func (w *world) podEnds(a, b, _ byte) {
	p, found := choose(w.pods, a, func(p *pod) bool { return !w.calm || !p.cycle })
	switch {
	case !found:
	case b%2 == 0 && p.Node != "" && !p.Ended:
		w.trace("the pod %s ends", p.UID)
		p.Ended = true
		w.emitPod(p)
	default:
		w.trace("the pod %s goes", p.UID)
		p.gone = true
		delete(w.pods, p.UID)
		w.emit(pods, p.UID, nil)
	}
}

// claimGoes deletes a claim; its PersistentVolume and Volume stay, as with a
// policy of Retain.
func (w *world) claimGoes(a, _, _ byte) {
	c, found := choose(w.claims, a, func(c *claim) bool { return !w.calm || !w.atWork(c.UID) })
	if !found {
		return
	}
	w.trace("the claim %s goes", c.UID)
	delete(w.claims, c.UID)
	w.emit(claims, c.UID, nil)
}

func (w *world) pvGoes(a, _, _ byte) {
	v, found := choose(w.pvs, a, func(v *ledger.PVObject) bool { return w.claims[v.Claim] == nil })
	if !found {
		return
	}
	w.trace("the PersistentVolume %s goes", v.Name)
	delete(w.pvs, v.Name)
	w.emit(pvs, v.Name, nil)
}

// claimGrows asks for more, perhaps for the impossible, or takes it back.
func (w *world) claimGrows(a, b, _ byte) {
	c, found := choose(w.claims, a, func(c *claim) bool { return c.Bound })
	if !found {
		return
	}
	switch v := w.volumes["pvc-"+c.UID]; {
	case b%4 == 0 && v != nil:
		c.Requested = v.Capacity
	case b%16 == 1:
		c.Requested = impossible
	default:
		c.Requested += int64(b%8) * gib / 2
	}
	w.trace("the claim %s asks for %d", c.UID, c.Requested)
	w.emitClaim(c)
}

// stockSelects is a scheduler without a ledger: it names a node for a claim.
func (w *world) stockSelects(a, b, _ byte) {
	c, found := choose(w.claims, a, func(c *claim) bool { return !c.Bound })
	if !found {
		return
	}
	c.SelectedNode = ""
	if b%4 != 0 {
		c.SelectedNode = w.nodes[int(b)%len(w.nodes)].name
	}
	w.trace("the claim %s gets the node %q", c.UID, c.SelectedNode)
	w.emitClaim(c)
}

// provisions answers CreateVolume for a claim that has its node: it makes the
// Volume if there is none, and the PersistentVolume once a replica is ready.
func (w *world) provisions(a, b, _ byte) {
	c, found := choose(w.claims, a, func(c *claim) bool { return !c.Bound && c.SelectedNode != "" })
	if !found {
		return
	}
	v := w.volumes["pvc-"+c.UID]
	if v == nil {
		n := w.node(c.SelectedNode)
		if p := n.serving(c.Class, b); p != nil {
			w.volumeComes(c, ledger.Replica{Node: n.name, Pool: p.Name})
		}
		return
	}
	for _, r := range v.Replicas {
		switch r.State {
		case ledger.Ready:
			w.binds(c, v.Name)
			return
		case ledger.Refused:
			w.trace("the claim %s loses its node", c.UID)
			c.SelectedNode = ""
			w.emitClaim(c)
			return
		}
	}
}

// binds makes a PersistentVolume and binds the claim to it.
func (w *world) binds(c *claim, volume string) {
	pv := &ledger.PVObject{Name: "pv-" + volume, Volume: volume, Claim: c.UID}
	w.trace("the claim %s is bound to %s", c.UID, pv.Name)
	w.pvs[pv.Name] = pv
	w.emitPV(pv)
	c.Bound = true
	w.emitClaim(c)
}

func (w *world) volumeComes(c *claim, replicas ...ledger.Replica) {
	v := &ledger.VolumeObject{Name: "pvc-" + c.UID, Claim: c.UID, Class: c.Class, Capacity: c.Requested, Replicas: replicas}
	w.trace("the Volume %s comes on %v", v.Name, replicas)
	w.volumes[v.Name] = v
	w.emitVolume(v)
}

// staticComes makes a volume that no claim asked for, with a PersistentVolume
// that may come late; bindsStatic gives it to a claim.
func (w *world) staticComes(a, b, c byte) {
	n := w.nodes[int(a)%len(w.nodes)]
	p := n.pools[int(b)%len(n.pools)]
	class := p.Classes[int(c)%len(p.Classes)]
	name := w.name("vol-")
	bytes := int64(c%4+1) * gib
	if !w.carve(p, name, class, bytes) {
		return
	}
	w.trace("the static volume %s comes on %s/%s", name, n.name, p.Name)
	pv := &ledger.PVObject{Name: "pv-" + name, Volume: name}
	w.pvs[pv.Name] = pv
	if c%3 != 0 {
		w.emitPV(pv)
	}
	if c%5 != 0 {
		v := &ledger.VolumeObject{Name: name, Class: class, Capacity: bytes, Replicas: []ledger.Replica{{Node: n.name, Pool: p.Name, State: ledger.Ready, Actual: bytes}}}
		w.volumes[name] = v
		w.emitVolume(v)
	}
}

// bindsForeign gives a claim the volume of another driver, perhaps while a provisioner is at work.
// The feed then tells the ledger no node of the claim.
func (w *world) bindsForeign(a, _, _ byte) {
	c, found := choose(w.claims, a, func(c *claim) bool { return !c.Bound })
	if !found {
		return
	}
	w.trace("the claim %s takes a volume of another driver", c.UID)
	c.Bound, c.SelectedNode = true, ""
	w.emitClaim(c)
}

func (w *world) bindsStatic(a, b, _ byte) {
	c, found := choose(w.claims, a, func(c *claim) bool { return !c.Bound })
	pv, static := choose(w.pvs, b, func(v *ledger.PVObject) bool { return v.Claim == "" })
	if !found || !static {
		return
	}
	w.trace("the claim %s takes the static %s", c.UID, pv.Name)
	pv.Claim = c.UID
	w.emitPV(pv)
	c.Bound = true
	w.emitClaim(c)
}
