package oversight

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/ownership"
)

// given are places by node.
type given map[string]Place

func (g given) Places(*v1alpha1.Volume, []string) map[string]Place { return maps.Clone(g) }

func TestTheBestPlaceThatIsNotLostGetsTheStandby(t *testing.T) {
	alone := func(v *ownership.Volume) { v.Replicas = v.Replicas[:1] }
	for name, test := range map[string]struct {
		places given
		dead   string
		want   string
	}{
		"the first by rank":           {given{"n2": {Fits: true, Slots: 1, Rank: 2}, "n3": {Fits: true, Slots: 1, Rank: 1}}, "", "n3"},
		"the first by name of equals": {given{"n2": {Fits: true, Slots: 1}, "n3": {Fits: true, Slots: 1}}, "", "n2"},
		"the first does not fit":      {given{"n2": {Fits: true, Slots: 1, Rank: 2}, "n3": {Slots: 1, Rank: 1}}, "", "n2"},
		"the first has no slot":       {given{"n2": {Fits: true, Slots: 1, Rank: 2}, "n3": {Fits: true, Rank: 1}}, "", "n2"},
		"the first is lost":           {given{"n2": {Fits: true, Slots: 1, Rank: 2}, "n3": {Fits: true, Slots: 1, Rank: 1}}, "n3", "n2"},
		"none is known":               {given{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, shared(alone), pod("db", "n1")), func(w *world) {
				r := w.controller(func(r *Reconciler) { r.Places = test.places })
				w.dead[test.dead] = true
				w.passes(time.Minute)
				w.oversees(r)
				got := ""
				for _, e := range w.volume().Status.Ownership.Replicas {
					if e.Node != "n1" {
						got = e.Node
					}
				}
				if got != test.want {
					t.Errorf("the standby is on %q, want %q", got, test.want)
				}
			})
		})
	}
}

// unused is a shared disk that no node has.
func unused(edits ...func(*ownership.Volume)) *ownership.Volume {
	v := shared(phase(ownership.Released))
	v.Primary, v.Replicas = ownership.Primary{}, nil
	for _, edit := range edits {
		edit(v)
	}
	return v
}

func TestADiskThatIsAttachedNowhereIsOpenToThePodThatWaits(t *testing.T) {
	all := given{"n1": {Fits: true, Slots: 1}, "n2": {Fits: true, Slots: 1}, "n3": {Fits: true, Slots: 1}}
	full := given{"n1": {Fits: true}, "n2": {Fits: true, Slots: 1}, "n3": {Slots: 1}}
	attaching := func(node string) func(*ownership.Volume) {
		return func(v *ownership.Volume) {
			v.Replicas = []ownership.Replica{{Node: node, State: ownership.Reserved}}
		}
	}
	ready := func(node string) func(*ownership.Volume) {
		return func(v *ownership.Volume) {
			v.Replicas = []ownership.Replica{{Node: node, State: ownership.Ready}}
		}
	}
	writing := func(v *ownership.Volume) {
		v.Primary = ownership.Primary{Node: "n1", Boot: boot, Phase: ownership.Active}
	}
	fenced := func(v *ownership.Volume) {
		v.Primary = ownership.Primary{Node: "n1", Boot: boot, Phase: ownership.Fenced}
		v.Replicas = []ownership.Replica{{Node: "n1", State: ownership.Ready}}
	}
	for name, test := range map[string]struct {
		volume *ownership.Volume
		places given
		pods   []client.Object
		dead   string
		want   []string
	}{
		"no pod":                     {unused(), all, nil, "", nil},
		"a pod that waits":           {unused(), all, []client.Object{pod("p", "")}, "", []string{"n1", "n2", "n3"}},
		"full nodes, and unfit ones": {unused(), full, []client.Object{pod("p", "")}, "", []string{"n2"}},
		"a node that released it and works": {unused(func(v *ownership.Volume) {
			v.Primary, v.Replicas = ownership.Primary{Node: "n1", Phase: ownership.Released}, []ownership.Replica{{Node: "n1", State: ownership.Ready}}
		}), all, []client.Object{pod("p", "")}, "", []string{"n1"}},
		"a node that released it and has it no more": {unused(func(v *ownership.Volume) { v.Primary = ownership.Primary{Node: "n1", Phase: ownership.Released} }), all,
			[]client.Object{pod("p", "")}, "", []string{"n1", "n2", "n3"}},
		"a pod that has ended":                                {unused(), all, []client.Object{pod("p", "", completed)}, "", nil},
		"a fenced node that stopped":                          {unused(fenced, func(v *ownership.Volume) { v.Replicas[0].State, v.Replicas[0].Unstaged = ownership.Diverged, v.Epoch }), all, []client.Object{pod("p", "")}, "", []string{"n1", "n2", "n3"}},
		"a volume with copies":                                {copies(phase(ownership.Released), func(v *ownership.Volume) { v.Replicas = v.Replicas[:1]; v.Replicas[0].State = ownership.Lagging }), all, []client.Object{pod("p", "")}, "", nil},
		"a node that is lost":                                 {unused(), all, []client.Object{pod("p", "")}, "n2", []string{"n1", "n3"}},
		"a pod with a node":                                   {unused(attaching("n2")), all, []client.Object{pod("p", "n2")}, "", []string{"n2"}},
		"an attachment is on its way and takes the last slot": {unused(attaching("n1")), full, []client.Object{pod("p", "")}, "", []string{"n1", "n2"}},
		"the only replica is ready": {unused(attaching("n1"), func(v *ownership.Volume) { v.Replicas[0].State = ownership.Ready }), all,
			[]client.Object{pod("p", "")}, "", []string{"n1"}},
		"the only replica's node is cordoned":    {unused(ready("n1")), given{"n1": {Slots: 1, Leaving: true}, "n2": all["n2"], "n3": all["n3"]}, []client.Object{pod("p", "")}, "", []string{"n1", "n2", "n3"}},
		"it is cordoned, and no pod waits":       {unused(ready("n1")), given{"n1": {Slots: 1, Leaving: true}, "n2": all["n2"], "n3": all["n3"]}, nil, "", []string{"n1"}},
		"it is cordoned, and the writer":         {unused(ready("n1"), writing), given{"n1": {Slots: 1, Leaving: true}, "n2": all["n2"], "n3": all["n3"]}, []client.Object{pod("p", "")}, "", []string{"n1"}},
		"the only replica's node is away":        {unused(ready("n2")), all, []client.Object{pod("p", "")}, "n2", []string{"n1", "n2", "n3"}},
		"it is away, and has the only share":     {unused(ready("n2"), func(v *ownership.Volume) { v.Sharing.MaxShares = 1 }), all, []client.Object{pod("p", "")}, "n2", []string{"n2"}},
		"it is cordoned, and has the only share": {unused(ready("n1"), func(v *ownership.Volume) { v.Sharing.MaxShares = 1 }), given{"n1": {Slots: 1, Leaving: true}, "n2": all["n2"]}, []client.Object{pod("p", "")}, "", []string{"n1", "n2"}},
		"a fenced node that has it no more":      {unused(fenced, func(v *ownership.Volume) { v.Replicas = nil }), all, []client.Object{pod("p", "")}, "", []string{"n1", "n2", "n3"}},
		"the only replica was shut out":          {unused(fenced), all, []client.Object{pod("p", "")}, "", []string{"n2", "n3"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, test.volume, test.pods...), func(w *world) {
				edits(w, node("n3"), labelledNode) // an older record had it there
				r := w.controller(func(r *Reconciler) { r.Places = test.places })
				w.dead[test.dead] = true
				for range 2 { // a node that is lost is away a minute later
					w.passes(90 * time.Second)
					w.oversees(r)
				}
				if diff := cmp.Diff(test.want, w.labels()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestASharedDiskWithoutARecordGetsItsFirstOne(t *testing.T) {
	bare := func(t *testing.T, edit func(*v1alpha1.Volume)) []client.Object {
		objects := cluster(t, shared())
		v := objects[0].(*v1alpha1.Volume)
		v.Status.Ownership = nil
		edit(v)
		return objects
	}
	ids := func(r *Reconciler) { r.FreshID = func() string { return "fresh" } }
	for _, edit := range []func(*v1alpha1.Volume){func(*v1alpha1.Volume) {}, func(v *v1alpha1.Volume) { v.Spec.Replication.Failover = nil }} {
		inWorld(t, bare(t, edit), func(w *world) {
			w.oversees(w.controller(ids))
			o := w.volume().Status.Ownership
			want := &v1alpha1.Ownership{Epoch: v1alpha1.Epoch{Number: 1, ID: "fresh"}, Primary: v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased},
				Lineage: []v1alpha1.Branch{{Epoch: v1alpha1.Epoch{Number: 1, ID: "fresh"}}}}
			if diff := cmp.Diff(want, o, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ExpireAt" }, cmp.Ignore())); diff != "" {
				t.Error(diff)
			}
		})
	}
	copied := func(v *v1alpha1.Volume) {
		v.Spec.Replication = v1alpha1.Replication{Factor: 2, Kind: v1alpha1.ReplicationSnapshots}
	}
	conflict := apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("volumes").GroupResource(), id, nil)
	for name, test := range map[string]struct {
		edit    func(*v1alpha1.Volume)
		deleted bool
		write   error
		fails   bool
	}{
		"another process is faster":   {edit: func(*v1alpha1.Volume) {}, write: conflict},
		"the write fails":             {edit: func(*v1alpha1.Volume) {}, write: errors.New("connection refused"), fails: true},
		"it is being deleted":         {edit: func(*v1alpha1.Volume) {}, deleted: true},
		"its copies are not made yet": {edit: copied},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, bare(t, test.edit), func(w *world) {
				if test.deleted {
					if err := w.server.Others().Delete(w.t.Context(), w.volume()); err != nil {
						w.t.Fatal(err)
					}
				}
				r := w.controller(ids)
				w.server.Before = func(lagging.Write) error { return test.write }
				_, err := r.Reconcile(w.t.Context(), named(id))
				if (err != nil) != test.fails || w.volume().Status.Ownership != nil {
					t.Errorf("the error is %v, and the record %+v", err, w.volume().Status.Ownership)
				}
			})
		})
	}
}

func TestAVolumeThatWaitsForASlotHasTheOthersThereLookedAt(t *testing.T) {
	inWorld(t, cluster(t, unused(), pod("p", "n2")), func(w *world) {
		other := w.volume().DeepCopy()
		other.Name, other.UID, other.ResourceVersion = "pvc-00000000-0000-0000-0000-000000000002", "u2", ""
		other.Status.Ownership.Replicas = []v1alpha1.OwnedReplica{{Node: "n2", State: v1alpha1.OwnedReady}}
		if err := w.server.Others().Create(w.t.Context(), other); err != nil {
			w.t.Fatal(err)
		}
		also := make(chan event.GenericEvent, 10)
		r := w.controller(func(r *Reconciler) { r.Places, r.also = given{"n2": {Fits: true}}, also })
		w.passes(time.Minute)
		result, err := r.Reconcile(w.t.Context(), named(id))
		if err != nil || result.RequeueAfter != soon || len(also) != 1 || (<-also).Object.GetName() != other.Name {
			t.Errorf("asked again after %s, %v", result.RequeueAfter, err)
		}
		w.passes(2 * time.Minute)
		if result, _ := r.Reconcile(w.t.Context(), named(id)); result.RequeueAfter != later {
			t.Errorf("after two minutes asked again after %s", result.RequeueAfter)
		}
	})
}

func TestAVolumeThatIsDeletedIsOpenToNoNode(t *testing.T) {
	for _, deleting := range []bool{false, true} {
		q := &question{pods: []corev1.Pod{*pod("p", "")}, facts: ownership.ControllerFacts{
			Record: unused(func(v *ownership.Volume) { v.Deleting = deleting }), Nodes: []ownership.Machine{{Name: "n1", Fits: true, Slots: 1}},
		}}
		if got := open(q); len(got) > 0 == deleting {
			t.Errorf("deleting %v: it is open to %v", deleting, got)
		}
	}
}

func TestTheRulesHearAllThatPlacesSay(t *testing.T) {
	places := given{"n2": {Fits: true, Slots: 2, GiveWay: true, MakesRoom: true, Leaving: true, Rank: 3}}
	q := &question{facts: ownership.ControllerFacts{Record: unused()}}
	got := machines(places, q, []v1alpha1.StorageNode{{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}}, view{})
	want := []ownership.Machine{{Name: "n2", Fits: true, Slots: 2, GiveWay: true, MakesRoom: true, Leaving: true}}
	if !slices.Equal(got, want) {
		t.Errorf("they hear %+v", got)
	}
}
