package oversight

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/ownership"
)

func TestFromWhichNodesAVolumeCanBeUsed(t *testing.T) {
	state := func(node string, s ownership.State) func(*ownership.Volume) {
		return func(v *ownership.Volume) {
			for i := range v.Replicas {
				if v.Replicas[i].Node == node {
					v.Replicas[i].State = s
				}
			}
		}
	}
	stopped := func(v *ownership.Volume) { v.Replicas[0].Unstaged = v.Epoch }
	for name, test := range map[string]struct {
		record, next *ownership.Volume
		want         []string
	}{
		"all replicas are ready":                       {record: copies(), want: []string{"n1", "n2", "n3"}},
		"one lags":                                     {record: copies(state("n2", ownership.Lagging)), want: []string{"n1", "n3"}},
		"the owner's is not ready":                     {record: copies(state("n1", ownership.Syncing)), want: []string{"n1", "n2", "n3"}},
		"the last owner's is not ready":                {record: copies(state("n1", ownership.Syncing), phase(ownership.Released)), want: []string{"n2", "n3"}},
		"the owner was fenced":                         {record: copies(phase(ownership.Fenced)), want: []string{"n2", "n3"}},
		"the fenced node says that it has stopped":     {record: copies(phase(ownership.Fenced), stopped), want: []string{"n1", "n2", "n3"}},
		"the fenced node has stopped and has diverged": {record: copies(phase(ownership.Fenced), stopped, state("n1", ownership.Diverged)), want: []string{"n2", "n3"}},
		"one is about to be removed":                   {record: copies(), next: copies(state("n3", ownership.Removing)), want: []string{"n1", "n2"}},
		"one is about to be forgotten":                 {record: copies(), next: copies(func(v *ownership.Volume) { v.Replicas = v.Replicas[:2] }), want: []string{"n1", "n2"}},
		"the owner is about to be fenced":              {record: copies(), next: copies(phase(ownership.Fenced)), want: []string{"n1", "n2", "n3"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, usable(test.record, test.next)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// transcript notes the writes of the controllers.
func (w *world) transcript() *[]string {
	var steps []string
	w.server.After = func(wr lagging.Write) error {
		switch o := wr.Object.(type) {
		case *v1alpha1.Volume:
			steps = append(steps, string(o.Status.Ownership.Primary.Phase))
		case *corev1.Node, *corev1.Pod:
			steps = append(steps, wr.Verb+" "+o.GetName())
		}
		return nil
	}
	return &steps
}

func labelledNode(n *corev1.Node) {
	metav1.SetMetaDataLabel(&n.ObjectMeta, v1alpha1.VolumeLabelPrefix+id, "true")
}

func TestTheLabelLeavesTheFencedNodeBeforeItsPodsEnd(t *testing.T) {
	inWorld(t, cluster(t, shared(), pod("db", "n1")), func(w *world) {
		r := w.controller(func(r *Reconciler) { r.Leads = func() bool { return false } })
		w.oversees(r)
		if diff := cmp.Diff([]string{"n1", "n2"}, w.labels()); diff != "" {
			t.Fatal(diff)
		}
		edits(w, node("n1"), tainted)
		steps := w.transcript()
		w.oversees(r)
		if diff := cmp.Diff([]string{"Fenced", "patch n1", "delete db"}, *steps); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheLabelLeavesANodeBeforeItsReplicaIsRemoved(t *testing.T) {
	past := func(v *ownership.Volume) { v.ExpireAt = time.Unix(1, 0).UTC() }
	inWorld(t, cluster(t, shared(phase(ownership.Released), past)), func(w *world) {
		for _, n := range []string{"n1", "n2"} {
			edits(w, node(n), labelledNode)
		}
		r, steps := w.controller(), w.transcript()
		w.oversees(r)
		if diff := cmp.Diff([]string{"patch n1", "patch n2", "Released"}, *steps); diff != "" {
			t.Error(diff)
		}
	})
}

func TestALabelThatAnOlderRecordSetIsTakenBack(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		edits(w, node("n3"), labelledNode)
		edits(w, node("n2"), func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, v1alpha1.VolumeLabelPrefix+id, "false") })
		stale := node("n3", labelledNode, func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, "zone", "a") })
		if diff := cmp.Diff(fmt.Sprint([]any{named(id)}), fmt.Sprint(volumesLabelled(w.t.Context(), stale))); diff != "" {
			t.Error(diff)
		}
		w.oversees(w.controller())
		if diff := cmp.Diff([]string{"n1", "n2"}, w.labels()); diff != "" {
			t.Error(diff)
		}
		n2 := node("n2")
		edits(w, n2, func(*corev1.Node) {})
		if value := n2.Labels[v1alpha1.VolumeLabelPrefix+id]; value != v1alpha1.VolumeLabelValue {
			t.Errorf("the label of n2 says %q", value)
		}
	})
}

func TestAVolumeOfAnotherPlacementHasNoLabel(t *testing.T) {
	objects := cluster(t, shared())
	objects[0].(*v1alpha1.Volume).Spec.Placement = v1alpha1.PlacementGroup
	inWorld(t, objects, func(w *world) {
		w.oversees(w.controller())
		if got := w.labels(); len(got) != 0 {
			t.Errorf("labelled are %v", got)
		}
	})
}

func TestALabelThatCannotBeMovedHoldsUpNoFenceAndEveryRemoval(t *testing.T) {
	past := func(v *ownership.Volume) { v.ExpireAt = time.Unix(1, 0).UTC() }
	for name, test := range map[string]struct {
		volume *ownership.Volume
		want   []string
	}{
		"a fence":   {shared(), []string{"Fenced", "delete db"}},
		"a removal": {shared(phase(ownership.Released), past), nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, test.volume), func(w *world) {
				for _, n := range []string{"n1", "n2"} {
					edits(w, node(n), func(n *corev1.Node) { labelledNode(n); tainted(n) })
				}
				if test.want != nil {
					if err := w.server.Others().Create(w.t.Context(), pod("db", "n1")); err != nil {
						w.t.Fatal(err)
					}
				}
				r, steps := w.controller(func(r *Reconciler) { r.Leads = func() bool { return false } }), w.transcript()
				w.server.Before = func(wr lagging.Write) error {
					if wr.Verb == "patch" {
						return errKilled
					}
					return nil
				}
				for range 3 {
					if _, err := r.Reconcile(w.t.Context(), named(id)); err == nil {
						t.Error("it does not fail")
					}
				}
				if diff := cmp.Diff(test.want, *steps); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
