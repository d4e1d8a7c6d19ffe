package shell

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// orphaned is for how long pods stay whose Node was deleted, before Kubernetes deletes them without grace.
const orphaned = 40 * time.Second

// planOfDeletions adds the deletion of one machine's Node to the plan of a seed. The targets keep reservations: without
// them nothing proves that a machine is off which has no Node. If the Node never comes back, no older record does: the
// machine may be the only one that knows a later epoch, and then the volume waits for a person.
func planOfDeletions(seed uint64) plan {
	p, d := planOf(seed), rolled(seed, 2, "plan")
	p.persistent = true
	gone := event{
		what: nodeDeleted, at: warm + d.upTo(40*time.Second), lasts: d.between(5*time.Second, 70*time.Second), node: d.below(p.nodes),
		nth: d.below(3), flag: d.chance(2), owner: d.chance(2),
	}
	for i := range p.events {
		if e := &p.events[i]; e.what == restore && gone.nth > 0 {
			e.what = podMoves
		}
	}
	p.events = inTime(append(p.events, gone))
	return p
}

// deletes deletes the Node of a machine, once in a schedule. The machine may run on. The Node may come back.
func (w *world) deletes(m *machine, e event) {
	for _, other := range w.machines {
		if other.deleted.Load() {
			return
		}
	}
	m.deleted.Store(true)
	w.locked(func() { m.deletedAt = time.Now() })
	w.count("Nodes deleted")
	meta := metav1.ObjectMeta{Name: m.name}
	for _, o := range []client.Object{
		&corev1.Node{ObjectMeta: meta}, &storagev1.CSINode{ObjectMeta: meta}, &v1alpha1.StorageNode{ObjectMeta: meta},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: m.name}},
	} {
		if err := w.api.remove(nil, o); err != nil {
			w.fail("deleting Node %s: %v", m.name, err)
		}
	}
	if e.flag {
		m.powersOff()
		w.count("machines off whose Node was deleted")
	}
	if m.gone.Store(e.nth > 0); e.nth == 0 {
		time.AfterFunc(e.lasts, func() { w.returns(m) })
	}
}

// returns makes the Node of a machine anew, as its kubelet does when it begins.
func (w *world) returns(m *machine) {
	if !m.deleted.Load() || w.over() {
		return
	}
	w.tells("cluster", "Node %s is back", m.name)
	w.joins(m)
	m.deleted.Store(false)
	m.tainted.Store(false)
	boot := m.bootID()
	m.annotates(func(n *corev1.Node) { n.Status.NodeInfo.BootID = boot })
	m.powersOn()
}

// collects deletes the pods on a machine whose Node was deleted.
func (w *world) collects(m *machine) {
	var at time.Time
	if w.locked(func() { at = m.deletedAt }); time.Since(at) < orphaned {
		return
	}
	for _, v := range w.volumes {
		for _, p := range w.pods(v) {
			if p.Spec.NodeName == m.name {
				w.tells("cluster", "deletes pod %s, which has no Node", p.Name)
				_ = w.api.remove(nil, p, client.GracePeriodSeconds(0))
			}
		}
	}
}

// forsaken says which records still count on a machine that is off, and whose Node was deleted for good.
func (o *oracle) forsaken() string {
	for _, m := range o.w.machines {
		if !m.gone.Load() || m.up.Load() {
			continue
		}
		for _, v := range o.w.volumes {
			r := one[v1alpha1.Volume](o.w.api, client.ObjectKey{Name: v.name}).Status.Ownership
			for i := range r.Replicas {
				if r.Replicas[i].Node == m.name {
					return fmt.Sprintf("%s still counts on %s, which was deleted%s", v.short, m.name, entries(r))
				}
			}
		}
	}
	return ""
}

// forsakes waits until no record counts on a machine that is off, and whose Node was deleted for good.
func (w *world) forsakes() {
	why := w.oracle.forsaken()
	if why != "" {
		w.count("nodes forsaken")
	}
	for ends := time.Now().Add(ownership.RebuildDelay + settling); why != "" && time.Now().Before(ends) && w.broken() == ""; why = w.oracle.forsaken() {
		w.steps()
	}
	if why != "" {
		w.fail("rest: %s", why)
	}
}

func TestTheProductKeepsItsPromisesWhenNodesAreDeleted(t *testing.T) {
	n := max(1, *schedules/scarcer)
	counts := explored(t, n, planOfDeletions)
	for what, least := range map[string]uint64{ // in a hundred schedules
		"takeovers": 100, "Nodes deleted": 90, "machines off whose Node was deleted": 30, "nodes forsaken": 10,
	} {
		if was := counts[what]; uint64(was) < least*(n/100) { //nolint:gosec // a count
			t.Errorf("too little happens: %d %s", was, what)
		}
	}
}
