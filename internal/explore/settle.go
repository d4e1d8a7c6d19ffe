package explore

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// Settle ends all faults and lets all processes work until nothing changes. The
// goals must then have been reached: rule 6, nothing lives only in memory.
func (w *World) Settle() {
	if w.Violation != "" {
		return
	}
	story := w.story
	story.say("the faults end")
	if !w.verbose {
		w.story = nil
	}
	defer func() { w.story = story }()
	(ending{w}).endFaults()
	for round, calm := 0, 0; round < 80 && calm < 6; round++ {
		if (ending{w}).round(round) {
			calm = 0
		}
		calm++
		if w.Violation != "" {
			return
		}
	}
	w.restJudge().checkRest()
}

func (w ending) endFaults() {
	w.server.down = false
	w.cut = [endpoints]uint16{}
	for i := 0; i < w.cfg.Nodes; i++ {
		w.faults().machineEvent(resumes, i, 0)
		w.faults().machineEvent(hears, i, 0)
		w.faults().boot(i)
		w.faults().agentUp(i)
		w.faults().machineEvent(untaints, i, 0)
		w.faults().machineEvent(addsNode, i, 0)
		w.faults().machineEvent(drains, i, 0)
		w.faults().machineEvent(uncordons, i, 0)
		w.slots.relieve(i)
	}
	w.onePod()
}

// onePod leaves one pod at most, on a node that has a replica or can get one.
func (w ending) onePod() {
	v, found := w.server.current.volume, false
	if w.cfg.Many {
		w.fittingPods(v, w.cfg.Shares)
		return
	}
	for i := range w.nodes {
		if !w.nodes[i].wanted {
			continue
		}
		ok := false
		if v != nil {
			e, has := v.Replica(names[i])
			ok = w.cfg.Kind.Traits().Attaches || has && e.State != ownership.Removing && e.State != ownership.Gone
		}
		if !ok || found || v.Deleting {
			w.faults().unwant(i)
		}
		found = found || ok
	}
}

// round lets every process work once until it waits, and tells whether any did.
func (w ending) round(n int) (busy bool) {
	for i := 0; i < w.cfg.Nodes; i++ {
		busy = w.faults().evict(i) || busy
		busy = w.work(i) || busy
	}
	for k := 0; k < 4 && w.overseers().controllerStep(n%controllers, 0); k++ {
		busy = true
	}
	busy = w.agree(n%controllers) || busy
	w.onePod()
	w.tick(ticks[[...]int{0, 0, 1, 0, 2}[n%5]])
	return busy
}

// agree lets the administrator approve. He asks for no failover of a disk whose writer runs.
func (w ending) agree(c int) bool {
	v := w.server.current.volume
	if v != nil && !v.Kind.Traits().Data {
		return w.faults().ask(v, func(writer int) bool { return !w.runs(writer) })
	}
	return w.faults().approve(c)
}

// work lets a node work until it waits.
func (w ending) work(i int) (busy bool) {
	for k := 0; k < 60 && (w.agents().agentStep(i, 0) || w.arrive() || w.faults().diskEvent(attaches, i, false)); k++ {
		busy = true
	}
	return busy
}

// arrive delivers a stream, or loses it if its receiver cannot take it.
func (w ending) arrive() bool {
	if len(w.streams) == 0 {
		return false
	}
	if !w.wire().deliver(0, false) {
		w.wire().lose(0)
	}
	return true
}

// restingSnapshots is how many a replica may have at rest: the newest, the recovery point, the newest
// in common with others, and those that are kept in any case.
const restingSnapshots = 3 + keep

// checkRest judges the world at rest.
func (w restJudge) checkRest() {
	v := w.server.current.volume
	if v == nil || w.Violation != "" {
		return
	}
	if v.Deleting {
		w.checkDeleted(v)
		return
	}
	if w.gone(v) {
		return
	}
	wanted := 0
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.wanted {
			wanted++
		}
		if n.mounted && !n.wanted {
			w.fail("rest: %s is still mounted and nobody wants it", names[i])
		}
		if n.wanted && !n.mounted {
			w.fail("rest: the pod on %s never got the volume", names[i])
		}
		if n.wanted && v.Kind.Traits().Reserves && !w.disk.accepts(i) {
			w.fail("rest: %s has the volume mounted and the disk refuses it", names[i])
		}
		if n.wanted && w.cfg.Many && (w.disk.holder == ownership.Key{} || !w.disk.registrants) {
			w.fail("rest: %s writes, and the disk is not reserved for those that are registered", names[i])
		}
		if o := v.On(names[i]); !n.wanted && o.Primary.Node == names[i] && o.Primary.Phase.Open() {
			w.fail("rest: the volume is still %v on %s", o.Primary.Phase, names[i])
		}
	}
	for i := range w.nodes {
		if _, has := v.Replica(names[i]); !has && v.Kind.Traits().Attaches && w.disk.links[i] != ownership.Detached {
			w.fail("rest: %s has no entry, and its attachment is %v", names[i], w.disk.links[i])
		}
	}
	if wanted == 0 && v.Kind.Traits().Attaches {
		if len(v.Replicas) > 0 || w.disk.taken(-1) > 0 {
			w.fail("rest: an unused volume has %d attachments, and %d are recorded", w.disk.taken(-1), len(v.Replicas))
		}
		return
	}
	if shall := max(v.Factor, wanted); len(v.Replicas) != shall {
		w.fail("rest: %d replicas for a factor of %d", len(v.Replicas), shall)
	}
	for _, e := range v.Replicas {
		w.checkReplicaAtRest(v, e)
	}
}

// checkDeleted: nothing is left of a volume that was deleted, not even its entries.
func (w restJudge) checkDeleted(v *ownership.Volume) {
	if len(v.Replicas) > 0 {
		w.fail("rest: a deleted volume has %d replicas", len(v.Replicas))
	}
	for i := range w.cfg.Nodes {
		if w.nodes[i].copy.Exists || w.disk.links[i] != ownership.Detached {
			w.fail("rest: %s still has a replica of a deleted volume", names[i])
		}
	}
}

func (w restJudge) checkReplicaAtRest(v *ownership.Volume, e ownership.Replica) {
	n := &w.nodes[indexOf(e.Node)]
	if e.State != ownership.Ready {
		w.fail("rest: the replica on %s is %v", e.Node, e.State)
	}
	if n.copy.Condemned || n.copy.Quarantined || n.copy.Exists != v.Kind.Traits().Data {
		w.fail("rest: the replica on %s is recorded and not in use", e.Node)
	}
	if n.copy.Size < v.Size && v.Kind.Traits().Data {
		w.fail("rest: the replica on %s has %d for a volume of %d", e.Node, n.copy.Size, v.Size)
	}
	if n.mounted && n.head.extent() < n.copy.Size && v.Kind.Traits().Data {
		w.fail("rest: the filesystem on %s has %d of %d", e.Node, n.head.extent(), n.copy.Size)
	}
	if i := indexOf(e.Node); v.Kind.Traits().Attaches && w.disk.links[i] != ownership.Attached {
		w.fail("rest: the disk is recorded as attached to %s and is %v", e.Node, w.disk.links[i])
	}
	if !v.Kind.Traits().Data || v.Primary.Phase.Open() || w.Violation != "" {
		return
	}
	if k := len(n.copy.Points); k > restingSnapshots {
		w.fail("rest: the replica on %s still has %d snapshots", e.Node, k)
	}
	if n.head != w.truth.last && knows(v.Lineage, w.truth.epoch) {
		w.fail("rest: the replica on %s does not hold what was acknowledged", e.Node)
	}
}

// mayGoOn tells whether the volume could go on from the snapshot.
func (w restJudge) mayGoOn(v *ownership.Volume, p lineage.Point) bool {
	c, ok := w.truth.data(p)
	end, known := w.truth.data(v.RecoveryPoint)
	if v.Primary.Phase == ownership.Preparing || v.Primary.Phase == ownership.Active {
		return ok && w.truth.last.includes(c)
	}
	return ok && known && end.includes(c)
}

// gone tells whether the world itself destroyed every copy that the volume could go
// on from: then nothing can be expected. If a copy in quarantine would do, a person
// has to adopt it.
func (w restJudge) gone(v *ownership.Volume) bool {
	if !v.Kind.Traits().Data {
		return false
	}
	for i := 0; i < w.cfg.Nodes; i++ {
		n := &w.nodes[i]
		_, counted := v.Replica(names[i])
		for _, p := range n.copy.Points {
			if counted && w.mayGoOn(v, p) {
				return false
			}
		}
	}
	return true
}
