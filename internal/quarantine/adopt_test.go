package quarantine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

func blank(o *v1alpha1.Orphan) { o.Filesystem = "" }

func from(source string) func(*v1alpha1.Orphan) {
	return func(o *v1alpha1.Orphan) { o.Source = source }
}

func asBlock(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }

func asFilesystem(pv *corev1.PersistentVolume) {
	pv.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
}

// ofShop sets the claim of exported on a volume.
func ofShop(s *v1alpha1.VolumeSpec) {
	s.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "db", UID: first}
}

func TestAnAdoptedVolumeMatchesTheRecordWithItsData(t *testing.T) {
	for name, tc := range map[string]struct {
		orphan  v1alpha1.InventoryItem
		objects []client.Object
		change  func(*Adoption)
		want    func(*v1alpha1.VolumeSpec) // changed from an ext4 volume of 1 GiB without a claim
	}{
		"a filesystem":                         {orphan: orphaned(lost), want: func(*v1alpha1.VolumeSpec) {}},
		"a block device":                       {orphan: orphaned(lost, blank), want: func(s *v1alpha1.VolumeSpec) { s.VolumeMode, s.FSType = v1alpha1.Block, "" }},
		"a copy of a snapshot":                 {orphan: orphaned(lost, from(photo)), want: func(s *v1alpha1.VolumeSpec) { s.Source = &v1alpha1.VolumeSource{Snapshot: photo} }},
		"a copy of a volume":                   {orphan: orphaned(lost, from(other)), want: func(s *v1alpha1.VolumeSpec) { s.Source = &v1alpha1.VolumeSource{Volume: other} }},
		"a class that the administrator names": {orphan: orphaned(lost), change: func(a *Adoption) { a.PoolClass = "slow" }, want: func(s *v1alpha1.VolumeSpec) { s.PoolClass = "slow" }},
		"a StorageClass that does not exist":   {orphan: orphaned(lost), objects: []client.Object{exported(lost)}, want: ofShop},
		"a StorageClass without a PoolClass":   {orphan: orphaned(lost), objects: []client.Object{exported(lost), storageClass("slow", "")}, want: ofShop},
		"a block device whose PersistentVolume promises a block device": {orphan: orphaned(lost, blank), objects: []client.Object{exported(lost, asBlock)}, want: func(s *v1alpha1.VolumeSpec) {
			s.VolumeMode, s.FSType = v1alpha1.Block, ""
			ofShop(s)
		}},
		"a filesystem whose PersistentVolume promises a filesystem": {orphan: orphaned(lost), objects: []client.Object{exported(lost, asFilesystem)}, want: ofShop},
		"a claim that is not the claim of the PersistentVolume": {orphan: orphaned(lost), objects: []client.Object{exported(lost, retained)},
			change: func(a *Adoption) { a.Claim = &corev1.ObjectReference{Namespace: "shop", Name: "db-copy"} },
			want: func(s *v1alpha1.VolumeSpec) {
				s.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "db-copy"}
			}},
		"the class of the PersistentVolume": {orphan: orphaned(lost), objects: []client.Object{exported(lost), storageClass("slow", "hdd")}, want: func(s *v1alpha1.VolumeSpec) {
			s.PoolClass = "hdd"
			ofShop(s)
		}},
		"a claim that the administrator names": {orphan: orphaned(lost), change: func(a *Adoption) { a.Claim = &corev1.ObjectReference{Namespace: "shop", Name: "db", UID: "another"} },
			want: func(s *v1alpha1.VolumeSpec) { s.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "db"} }},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, append(tc.objects, node(tc.orphan))...)
			a := Adoption{Node: "n1", Name: lost}
			if tc.change != nil {
				tc.change(&a)
			}
			done, err := Adopt(t.Context(), c, a)
			if err != nil || !done.NewVolume || done.NewPersistentVolume == (len(tc.objects) > 0) {
				t.Fatalf("%+v, %v", done, err)
			}
			want := volume(lost, "n1").Spec
			want.Adopted, want.VolumeMode, want.FSType = true, v1alpha1.Filesystem, v1alpha1.Ext4
			want.Sharing, want.Placement, want.Replication.Factor = v1alpha1.Exclusive, v1alpha1.PlacementNode, 1
			tc.want(&want)
			if diff := cmp.Diff(want, done.Volume.Spec); diff != "" {
				t.Error(diff)
			}
			if _, labelled := done.Volume.Labels[v1alpha1.ReplicaLabel("n1")]; !labelled || len(done.Volume.Finalizers) != 1 {
				t.Errorf("metadata %+v", done.Volume.ObjectMeta)
			}
		})
	}
}

func TestTheDataOfTheNameIsAdoptedAndNoOther(t *testing.T) {
	twice := node(v1alpha1.InventoryItem{Volume: lost})
	twice.Status.Pools = append(twice.Status.Pools, v1alpha1.Pool{Name: "vg1", Classes: []string{"fast"}, Inventory: []v1alpha1.InventoryItem{orphaned(lost)}})
	for name, tc := range map[string]struct {
		node *v1alpha1.StorageNode
		pool string
	}{
		"the report lists another orphan first":          {node(orphaned(other, blank), orphaned(lost)), "vg0"},
		"another orphan is to be forgotten":              {forgetting(node(orphaned(other), orphaned(lost)), other), "vg0"},
		"the data is an orphan in only one of two pools": {twice, "vg1"},
	} {
		t.Run(name, func(t *testing.T) {
			done, err := Adopt(t.Context(), cluster(t, interceptor.Funcs{}, tc.node), Adoption{Node: "n1", Name: lost})
			if err != nil {
				t.Fatal(err)
			}
			if s := done.Volume.Spec; s.FSType != v1alpha1.Ext4 || s.Replicas[0].Pool != tc.pool {
				t.Errorf("adopted as %+v", s)
			}
		})
	}
}

func TestAVolumeOfAPersistentVolumeWithoutAStorageClassIsOfThePoolsOnlyClass(t *testing.T) {
	c := cluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if key.Name == "" {
			return errors.New("resource name may not be empty") // as clients of a real API server say
		}
		return c.Get(ctx, key, o, opts...)
	}}, node(orphaned(lost)), exported(lost, func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "" }))
	if done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost}); err != nil || done.Volume.Spec.PoolClass != "fast" {
		t.Errorf("%+v, %v", done.Volume, err)
	}
}

func TestAPersistentVolumeIsMadeForAVolumeThatNoneIsOnTheWayFor(t *testing.T) {
	orphan := func(status metav1.ConditionStatus) *v1alpha1.Volume {
		v := volume(lost, "n1")
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOrphaned, Status: status}}
		return v
	}
	found := v1alpha1.ReplicaStatus{Node: "n1", Pool: "vg0", State: v1alpha1.ReplicaReady, Reason: v1alpha1.ReasonFound}
	for name, tc := range map[string]struct {
		volume  *v1alpha1.Volume
		refused bool
	}{
		"the node found the data":         {volume: withEntries(volume(lost, "n1"), found)},
		"no object refers to the volume":  {volume: orphan(metav1.ConditionTrue)},
		"the claim exists again":          {volume: orphan(metav1.ConditionFalse), refused: true},
		"the creation may not have ended": {volume: volume(lost, "n1"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, node(), tc.volume)
			done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost})
			if errors.Is(err, ErrRefused) != tc.refused || (err == nil) == tc.refused || done.NewPersistentVolume == tc.refused {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
}

func TestAdoptionIsRefused(t *testing.T) {
	crowded, deleting := node(orphaned(lost)), volume(lost, "n1")
	crowded.Status.Pools[0].Classes = []string{"fast", "faster"}
	deleting.DeletionTimestamp, deleting.Finalizers = &since, []string{v1alpha1.VolumeFinalizer}
	for told, objects := range map[string][]client.Object{
		"node n1 does not report":                       {},
		"node n1 reports no orphan":                     {node(orphaned(other))},
		"serves these PoolClasses: [fast, faster]":      {crowded},
		"is on n2, n3: what node n1 has may be older":   {node(orphaned(lost)), volume(lost, "n2", "n3")},
		"is being deleted":                              {node(orphaned(lost)), deleting},
		"was not adopted":                               {node(), volume(lost, "n1")},
		"kubectl berth forget --undo":                   {forgetting(node(orphaned(lost)), lost)},
		"promises a filesystem, and none was ever made": {node(orphaned(lost, blank)), exported(lost)},
		"promises a block device, and the data has":     {node(orphaned(lost)), exported(lost, asBlock)},
	} {
		t.Run(told, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return errors.New("something was made")
			}}, objects...)
			if _, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), told) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := Adopt(t.Context(), cluster(t, interceptor.Funcs{}, node(orphaned("root"))), Adoption{Node: "n1", Name: "root"}); !errors.Is(err, ErrRefused) {
		t.Errorf("what is no volume: %v", err)
	}
}

func TestAnAdoptionThatWasInterruptedIsFinishedByTheNext(t *testing.T) {
	away := errors.New("connection refused")
	down := true
	c := cluster(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, pv := o.(*corev1.PersistentVolume); pv && down {
			return away
		}
		return c.Create(ctx, o, opts...)
	}}, node(orphaned(lost)))
	a := Adoption{Node: "n1", Name: lost}
	if _, err := Adopt(t.Context(), c, a); !errors.Is(err, away) {
		t.Fatalf("error %v", err)
	}
	n := node() // the agent has found its data, and reports no orphan
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		t.Fatal(err)
	}
	n.Status.Pools[0].Inventory = nil
	if err := c.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	down = false
	for _, made := range []bool{true, false} {
		done, err := Adopt(t.Context(), c, a)
		if err != nil || done.NewVolume || done.NewPersistentVolume != made {
			t.Errorf("%+v, %v", done, err)
		}
	}
}

func TestThePersistentVolumeRetainsAndIsKeptForItsClaim(t *testing.T) {
	fast := "fast-storage"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	claim.Spec.StorageClassName = &fast
	c := cluster(t, interceptor.Funcs{}, node(orphaned(lost)), claim)
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "db"}
	done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost, Claim: ref})
	if err != nil {
		t.Fatal(err)
	}
	got := done.PersistentVolume
	if got.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || got.Spec.StorageClassName != fast {
		t.Errorf("%s of class %q", got.Spec.PersistentVolumeReclaimPolicy, got.Spec.StorageClassName)
	}
	if diff := cmp.Diff(ref, got.Spec.ClaimRef); diff != "" {
		t.Error(diff)
	}
	term := got.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	want := corev1.NodeSelectorRequirement{Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}
	if diff := cmp.Diff(want, term); diff != "" {
		t.Error(diff)
	}
}

func TestThePersistentVolumeIsOfTheStorageClassThatIsNamedOrOfTheClaims(t *testing.T) {
	ref := &corev1.ObjectReference{Namespace: "shop", Name: "db"}
	slow := claimed(first, "")
	slow.Spec.StorageClassName = new("slow")
	for name, tc := range map[string]struct {
		objects []client.Object
		claim   *corev1.ObjectReference
		named   string
		want    string
	}{
		"the administrator names a StorageClass and no claim":                        {named: "fast", want: "fast"},
		"the administrator names a StorageClass and a claim of another StorageClass": {objects: []client.Object{slow}, claim: ref, named: "fast", want: "fast"},
		"the administrator names a claim with a StorageClass":                        {objects: []client.Object{slow}, claim: ref, want: "slow"},
		"the administrator names a claim without a StorageClass":                     {objects: []client.Object{claimed(first, "")}, claim: ref},
		"the administrator names a claim that does not exist":                        {claim: ref},
		"the administrator names no StorageClass and no claim":                       {},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, append(tc.objects, node(orphaned(lost)))...)
			done, err := Adopt(t.Context(), c, Adoption{Node: "n1", Name: lost, StorageClass: tc.named, Claim: tc.claim})
			if err != nil || done.PersistentVolume.Spec.StorageClassName != tc.want {
				t.Errorf("%+v, %v", done.PersistentVolume, err)
			}
		})
	}
}
