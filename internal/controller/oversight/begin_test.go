package oversight

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

func TestTheFirstRecordFollowsFromTheKindAndThePlaces(t *testing.T) {
	epoch := lineage.Epoch{Number: 1, ID: "fresh"}
	on := func(nodes ...string) (wanted []v1alpha1.ReplicaSpec) {
		for _, n := range nodes {
			wanted = append(wanted, v1alpha1.ReplicaSpec{Node: n, Pool: "vg"})
		}
		return wanted
	}
	failover := ownership.Failover{Automatic: true, MaxDataLoss: time.Minute}
	for name, tc := range map[string]struct {
		parameters ownership.Volume
		wanted     []v1alpha1.ReplicaSpec
		want       *ownership.Volume
	}{
		"no node has a shared disk, and its first mount begins with a check": {
			ownership.Volume{Kind: ownership.Attachments, Factor: 2, Size: 1, Sharing: ownership.Sharing{MaxShares: 3}}, nil,
			&ownership.Volume{Kind: ownership.Attachments, Factor: 2, Size: 1, Sharing: ownership.Sharing{MaxShares: 3},
				Epoch: epoch, Lineage: lineage.Lineage{{Epoch: epoch}}},
		},
		"copies are made where the Volume says, and the first of these makes the first snapshot": {
			ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 1, Failover: failover}, on("b", "a"),
			&ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 1, Failover: failover, Epoch: epoch, Lineage: lineage.Lineage{{Epoch: epoch}},
				Clean: true, Primary: ownership.Primary{Node: "b"}, RecoveryPoint: lineage.Point{Epoch: epoch, Seq: 1},
				Replicas: []ownership.Replica{{Node: "a"}, {Node: "b"}}},
		},
		"copies that have no places yet have no record": {ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := beginning(&tc.parameters, tc.wanted, func() string { return "fresh" })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARecordThatTheAPICannotHoldIsNotWritten(t *testing.T) {
	malformed := func(f *ownership.ControllerFacts) (ownership.Action, bool) {
		next := *f.Record
		next.Kind = ownership.OneCopy
		return ownership.Action{Verb: ownership.Record, Next: &next}, true
	}
	bare := cluster(t, shared())
	bare[0].(*v1alpha1.Volume).Status.Ownership = nil
	for name, tc := range map[string]struct {
		objects []client.Object
		alter   func(*world, *Reconciler)
		want    string
	}{
		"of a rule": {cluster(t, shared()), func(_ *world, r *Reconciler) {
			r.Rules = ownership.Chain[ownership.ControllerFacts]{{Name: "malformed", Decide: malformed}}
		}, "is malformed"},
		"the first": {bare, func(_ *world, r *Reconciler) { r.FreshID = func() string { return strings.Repeat("x", 1<<10) } }, "is malformed"},
		"the first, of a volume that says nothing of use by now": {bare, func(w *world, r *Reconciler) {
			r.FreshID = func() string { return "fresh" }
			read := 0
			r.Live.(*reads).before = func(o runtime.Object) error {
				if _, is := o.(*v1alpha1.Volume); is {
					if read++; read == 2 {
						edits(w, w.volume(), func(v *v1alpha1.Volume) { v.Spec.Replication.Factor = 0 })
					}
				}
				return nil
			}
		}, "spec.replication.factor"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.objects, func(w *world) {
				r := w.controller()
				tc.alter(w, r)
				before := w.volume().Status.Ownership
				_, err := r.Reconcile(w.t.Context(), named(id))
				if err == nil || !strings.Contains(err.Error(), tc.want) || !cmp.Equal(before, w.volume().Status.Ownership) {
					t.Errorf("the record is %+v, %v", w.volume().Status.Ownership, err)
				}
			})
		})
	}
}
