package oracle

import (
	"slices"

	"berth.dev/berth/internal/ledger"
)

// The acts of the agents and the controller.

// agentWorks lets a node's agent carve and grow replicas as the Volumes ask.
func (w *world) agentWorks(a, b, _ byte) {
	n := w.nodes[int(a)%len(w.nodes)]
	for _, name := range sortedKeys(w.volumes) {
		v := w.volumes[name]
		for i := range v.Replicas {
			if r := &v.Replicas[i]; r.Node == n.name && w.carry(n, v, r, b) {
				w.emitVolume(v)
			}
		}
	}
}

// carry carries out one replica, and returns whether anything changed.
func (w *world) carry(n *node, v *ledger.VolumeObject, r *ledger.Replica, b byte) bool {
	p := n.pool(r.Pool)
	grows := r.State == ledger.Ready && r.Actual < v.Capacity
	if p == nil || r.State != ledger.Pending && !grows {
		return false
	}
	if !w.carve(p, v.Name, v.Class, v.Capacity) {
		w.trace("the node %s refuses %s", n.name, v.Name)
		r.State = ledger.Refused
		return true
	}
	w.trace("the node %s carves %s from %s", n.name, v.Name, p.Name)
	r.State, r.Actual, r.Taken = ledger.Ready, v.Capacity, 0
	if b%2 == 0 {
		r.Taken = p.carved[v.Name]
	}
	return true
}

// agentReports publishes a report. A few are odd: a pool is missing, figures
// change, the order is another.
func (w *world) agentReports(a, b, c byte) {
	p := w.nodes[int(a)%len(w.nodes)].pools[int(c)%len(w.nodes[int(a)%len(w.nodes)].pools)]
	if !w.calm {
		switch b % 16 {
		case 2, 8, 9:
			p.Foreign = int64(c%16) * gib / 2
		case 3:
			p.Filled, p.FilledMetadata = int64(c%11)*gib, int(c)%101
		case 4:
			p.Health = ledger.Health(c % 3)
		case 5:
			p.Total += gib
		}
	}
	w.report(int(a)%len(w.nodes), !w.calm && b%16 == 0, b)
}

// report publishes the contents of the node's pools.
func (w *world) report(i int, lacks bool, odd byte) {
	n := w.nodes[i]
	r := ledger.Report{Node: n.name, Domain: n.domain, Generation: w.revision, Ready: w.calm || odd%32 != 6}
	if odd%32 == 7 && !w.calm {
		r.Generation = 0
	}
	for k, p := range n.pools {
		if lacks && k == int(odd/16)%len(n.pools) {
			continue
		}
		r.Pools = append(r.Pools, w.inventory(p))
	}
	if odd%2 == 0 {
		slices.Reverse(r.Pools)
	}
	w.trace("the node %s reports at %d (ready %t, pool missing %t)", n.name, r.Generation, r.Ready, lacks)
	w.emit(reports, n.name, r)
}

// inventory is the pool as reported, with the items that no Volume accounts for.
func (w *world) inventory(p *pool) ledger.Pool {
	q := p.Pool
	q.Classes = slices.Clone(p.Classes)
	for _, name := range sortedKeys(p.carved) {
		if w.volumes[name] == nil {
			q.Inventory = append(q.Inventory, ledger.Item{Owner: ledger.Volume(name), Taken: p.carved[name]})
		}
	}
	for o, taken := range p.inline {
		q.Inventory = append(q.Inventory, ledger.Item{Owner: o, Taken: taken})
	}
	slices.SortFunc(q.Inventory, func(a, b ledger.Item) int { return a.Owner.Compare(b.Owner) })
	return q
}

// nodeGoes deletes a StorageNode. Its next report brings it back.
func (w *world) nodeGoes(a, _, _ byte) {
	n := w.nodes[int(a)%len(w.nodes)]
	w.trace("the StorageNode %s goes", n.name)
	w.emit(reports, n.name, nil)
}

// publishes makes the inline volumes of a bound pod.
func (w *world) publishes(a, b, _ byte) {
	p, found := choose(w.pods, a, func(p *pod) bool { return p.Node != "" && !p.Started && !p.Ended && !p.gone })
	if !found || slices.ContainsFunc(p.Inline, func(v ledger.InlineVolume) bool { return v.Bytes == impossible }) {
		return
	}
	n := w.node(p.Node)
	for _, v := range p.Inline {
		if q := n.serving(v.Class, b); q != nil && w.classes[v.Class] != nil {
			q.inline[ledger.Inline(p.UID, v.Name)] = charge(&q.Pool, *w.classes[v.Class], v.Bytes)
		}
	}
	w.trace("the pod %s starts", p.UID)
	p.Started = true
	w.emitPod(p)
}

// unpublishes removes the inline volumes of pods that are gone.
func (w *world) unpublishes(a, _, _ byte) {
	for _, q := range w.nodes[int(a)%len(w.nodes)].pools {
		for o := range q.inline {
			if p := w.pods[o.ID]; p == nil || p.Ended {
				delete(q.inline, o)
			}
		}
	}
}

// volumeGoes takes a volume without PersistentVolume one step towards its end.
func (w *world) volumeGoes(a, b, _ byte) {
	v, found := choose(w.volumes, a, func(v *ledger.VolumeObject) bool { return w.deletable(v.Name) })
	if !found {
		return
	}
	if b%3 == 0 && !w.calm {
		w.trace("the Volume %s is torn away", v.Name)
		w.dropVolume(v.Name)
		return
	}
	for i := range v.Replicas {
		if r := &v.Replicas[i]; r.State != ledger.Gone {
			if p := w.node(r.Node).pool(r.Pool); p != nil {
				delete(p.carved, v.Name)
			}
			w.trace("the replica of %s on %s goes", v.Name, r.Node)
			r.State = ledger.Gone
			w.emitVolume(v)
			return
		}
	}
	w.trace("the Volume %s goes", v.Name)
	w.dropVolume(v.Name)
}

func (w *world) dropVolume(name string) {
	delete(w.volumes, name)
	w.emit(volumes, name, nil)
}

// deletable is whether no PersistentVolume needs the Volume and no claim waits
// for it.
func (w *world) deletable(name string) bool {
	for _, pv := range w.pvs {
		if pv.Volume == name {
			return false
		}
	}
	c := w.claims[w.volumes[name].Claim]
	return c == nil || !w.calm && !w.atWork(c.UID)
}

// leftovers cleans volumes away that no Volume accounts for.
func (w *world) leftovers(a, _, _ byte) {
	for _, p := range w.nodes[int(a)%len(w.nodes)].pools {
		for name := range p.carved {
			if w.volumes[name] == nil {
				delete(p.carved, name)
			}
		}
	}
}

// controllerExpands raises a Volume's capacity to the size that its claim asks for.
func (w *world) controllerExpands(a, _, _ byte) {
	c, found := choose(w.claims, a, func(c *claim) bool {
		v := w.volumes["pvc-"+c.UID]
		return c.Bound && c.Requested < 100*gib && v != nil && v.Capacity < c.Requested
	})
	if !found {
		return
	}
	if v := w.volumes["pvc-"+c.UID]; v != nil && v.Capacity < c.Requested {
		w.trace("the Volume %s is to grow to %d", v.Name, c.Requested)
		v.Capacity = c.Requested
		w.emitVolume(v)
	}
}

// replicates adds a replica to a Volume, or removes it.
func (w *world) replicates(a, b, c byte) {
	v, found := choose(w.volumes, a, func(v *ledger.VolumeObject) bool { return len(v.Replicas) > 0 })
	n := w.nodes[int(b)%len(w.nodes)]
	if !found || slices.ContainsFunc(v.Replicas, func(r ledger.Replica) bool { return r.Node == n.name }) {
		return
	}
	if p := n.serving(v.Class, c); p != nil {
		w.trace("the Volume %s gets a replica on %s/%s", v.Name, n.name, p.Name)
		v.Replicas = append(v.Replicas, ledger.Replica{Node: n.name, Pool: p.Name, Yields: p.Kind == ledger.Slots})
		w.emitVolume(v)
	}
}

// classChanges edits a PoolClass, removes it or brings it back.
func (w *world) classChanges(a, b, c byte) {
	names := []string{"fast", "bulk", "raid", "thin", "disk", "lun"}
	name := names[int(a)%len(names)]
	old := w.classes[name]
	if b%8 == 0 && old != nil {
		w.trace("the class %s goes", name)
		delete(w.classes, name)
		w.emit(classes, name, nil)
		return
	}
	next := &ledger.Class{Name: name}
	if old != nil {
		*next = *old
	}
	next.Spare = int64(c%5) * gib
	next.InlineNamespaces = []string{"shop"}
	if b%8 == 3 {
		next.InlineNamespaces = []string{"kitchen"}
	}
	if b%4 == 1 {
		next.Layout = ledger.Layout{Stripes: int64(c % 4), Mirrors: int64(b / 64), Parity: int64(c / 128), Metadata: int64(b % 2)}
	}
	w.trace("the class %s changes to %+v", name, *next)
	w.classes[name] = next
	w.emit(classes, name, *next)
}
