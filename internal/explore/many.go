package explore

import (
	"slices"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// changes are the nodes of which a record says another epoch, phase or fence request than before. A writer that it has
// forgotten, because the epoch was over, is none of them.
func changes(old, v *ownership.Volume) (nodes []string) {
	for _, n := range names[:maxNodes] {
		a, b := old.On(n), v.On(n)
		forgotten := b.Epoch.IsZero() && !a.Primary.Phase.Open()
		if !forgotten && (a.Epoch != b.Epoch || a.Primary != b.Primary || a.FenceRequest != b.FenceRequest) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// changing is the node about whose epoch a record was changed, or that of its primary if it is about none.
func changing(old, v *ownership.Volume) string {
	if nodes := changes(old, v); len(nodes) > 0 {
		return nodes[0]
	}
	return v.Primary.Node
}

// checkWriters: a write changes what the record says of one writer. Of another it may forget what is over.
func (w recordJudge) checkWriters(old, v *ownership.Volume) {
	if nodes := changes(old, v); len(nodes) > 1 {
		w.fail("writers: one write of the record changes the epochs of %s and %s", nodes[0], nodes[1])
	}
}

// fittingPods ends the pods for which the disk has no share left, and all pods of a volume that is being deleted.
func (w ending) fittingPods(v *ownership.Volume, left int) {
	for i := range w.nodes {
		if !w.nodes[i].wanted {
			continue
		}
		if left--; left < 0 || v != nil && v.Deleting {
			w.faults().unwant(i)
		}
	}
}

// endureWriters judges what must happen while one of several writers is dead: it is shut out, and each pod elsewhere has
// the volume before long.
func (w ending) endureWriters(dead int) {
	w.endFaults()
	w.faults().crash(dead)
	w.faults().unwant(dead)
	if w.diskJudge().helpless() {
		return // no node may say that the dead one is shut out
	}
	epoch := w.server.current.volume.On(names[dead]).Epoch
	for range enduring {
		pods := 0
		for i := range w.cfg.Nodes {
			if w.nodes[i].wanted {
				pods++
			}
		}
		if pods == 0 {
			w.faults().want((dead+1)%w.cfg.Nodes, true)
		}
		w.fittingPods(w.server.current.volume, w.cfg.Shares-1) // the dead node keeps its share
		for i := range w.cfg.Nodes {
			if i != dead {
				w.faults().evict(i)
				w.work(i)
			}
		}
		for c := range w.ctl {
			for range 4 {
				w.overseers().controllerStep(c, 0)
			}
			w.agree(c)
		}
		if w.Violation != "" {
			return
		}
		w.tick(ticks[0])
	}
	if v := w.server.current.volume.On(names[dead]); v.Epoch == epoch && v.Primary.Phase.Open() {
		w.fail("endurance: %s is dead and is not shut out of epoch %v after %d rounds", names[dead], epoch, enduring)
	}
	for i := range w.nodes {
		if w.nodes[i].wanted && !w.nodes[i].mounted {
			w.fail("endurance: the pod on %s has no volume after %d rounds", names[i], enduring)
		}
	}
}

// recallEpochs takes in a backup from before a fence: an epoch that its node has not opened may begin after all.
func (w recordJudge) recallEpochs() {
	if w.cfg.Many {
		w.truth.fenced = slices.DeleteFunc(slices.Clone(w.truth.fenced), func(e lineage.Epoch) bool {
			return !slices.ContainsFunc(w.nodes[:], func(n node) bool { return n.copy.Opened == e })
		})
	}
}
