package quarantine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
)

// photoOf is a snapshot of lost, wanted in vg0 of some nodes.
func photoOf(nodes ...string) *v1alpha1.Snapshot {
	s := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: photo}}
	s.Spec = v1alpha1.SnapshotSpec{Volume: lost, VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast", Adopted: true}
	for _, n := range nodes {
		s.Spec.Replicas = append(s.Spec.Replicas, v1alpha1.ReplicaSpec{Node: n, Pool: "vg0"})
	}
	return s
}

func ofClass(class string) *v1alpha1.Volume {
	v := volume(lost, "n1")
	v.Spec.PoolClass = class
	return v
}

// older removes a feature from those that a node's agent lists.
func older(n *v1alpha1.StorageNode, feature string) *v1alpha1.StorageNode {
	n.Status.Features = slices.DeleteFunc(n.Status.Features, func(f string) bool { return f == feature })
	return n
}

func serving(n *v1alpha1.StorageNode, classes ...string) *v1alpha1.StorageNode {
	n.Status.Pools[0].Classes = classes
	return n
}

func TestAnAdoptedSnapshotMatchesTheRecordWithItsData(t *testing.T) {
	taken := orphaned(photo, from(lost))
	for name, tc := range map[string]struct {
		objects []client.Object
		class   string
		want    func(*v1alpha1.SnapshotSpec) // changed from that of an ext4 volume of class fast
	}{
		"a snapshot of a filesystem":                 {objects: []client.Object{node(taken)}, want: func(*v1alpha1.SnapshotSpec) {}},
		"a snapshot of a block device":               {objects: []client.Object{node(orphaned(photo, from(lost), blank))}, want: func(s *v1alpha1.SnapshotSpec) { s.VolumeMode, s.FSType = v1alpha1.Block, "" }},
		"a snapshot of an existing volume":           {objects: []client.Object{serving(node(taken), "fast", "slow"), ofClass("slow")}, want: func(s *v1alpha1.SnapshotSpec) { s.PoolClass = "slow" }},
		"a class that the administrator names":       {objects: []client.Object{serving(node(taken), "fast", "slow")}, class: "slow", want: func(s *v1alpha1.SnapshotSpec) { s.PoolClass = "slow" }},
		"a snapshot beside the orphan of the volume": {objects: []client.Object{node(taken, orphaned(lost))}, want: func(*v1alpha1.SnapshotSpec) {}},
		"a snapshot of another volume":               {objects: []client.Object{node(orphaned(photo, from(other)))}, want: func(s *v1alpha1.SnapshotSpec) { s.Volume = other }},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, tc.objects...)
			s, made, err := AdoptSnapshot(t.Context(), c, SnapshotAdoption{Node: "n1", Name: photo, PoolClass: tc.class})
			if err != nil || !made {
				t.Fatal(made, err)
			}
			want := photoOf("n1").Spec
			tc.want(&want)
			if diff := cmp.Diff(want, s.Spec); diff != "" {
				t.Error(diff)
			}
			if _, labelled := s.Labels[v1alpha1.ReplicaLabel("n1")]; !labelled || len(s.Finalizers) != 1 {
				t.Errorf("metadata %+v", s.ObjectMeta)
			}
			if _, again, err := AdoptSnapshot(t.Context(), c, SnapshotAdoption{Node: "n1", Name: photo}); err != nil || again {
				t.Errorf("adopting it again: made %v, %v", again, err)
			}
		})
	}
}

func TestAdoptingASnapshotIsRefused(t *testing.T) {
	taken := orphaned(photo, from(lost))
	deleting := photoOf("n1")
	deleting.DeletionTimestamp, deleting.Finalizers = &since, []string{v1alpha1.SnapshotFinalizer}
	for told, objects := range map[string][]client.Object{
		"node n1 does not report":                     {},
		"node n1 reports no orphan":                   {node(orphaned(lost))},
		"serves these PoolClasses: [fast, slow]":      {serving(node(taken), "fast", "slow")},
		"is on n2, n3: what node n1 has may be older": {node(taken), photoOf("n2", "n3")},
		"is being deleted":                            {node(taken), deleting},
		"leaves adopted snapshots as they are":        {older(node(taken), v1alpha1.FeatureAdoptedSnapshots)},
		"kubectl berth forget --undo":                 {forgetting(node(taken), photo)},
		`the volume that it is of: it says ""`:        {node(orphaned(photo))},
		`the volume that it is of: it says "root"`:    {node(orphaned(photo, from("root")))},
	} {
		t.Run(told, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return errors.New("something was made")
			}}, objects...)
			_, _, err := AdoptSnapshot(t.Context(), c, SnapshotAdoption{Node: "n1", Name: photo})
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), told) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, _, err := AdoptSnapshot(t.Context(), cluster(t, interceptor.Funcs{}, node(orphaned(lost, from(other)))), SnapshotAdoption{Node: "n1", Name: lost}); !errors.Is(err, ErrRefused) {
		t.Errorf("a volume: %v", err)
	}
}

func TestASnapshotMadeByAnotherProcessMeanwhileIsNotReplaced(t *testing.T) {
	theirs := photoOf("n2")
	theirs.Spec.Adopted = false
	c := cluster(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if err := c.Create(ctx, theirs); err != nil {
			return err
		}
		return c.Create(ctx, o, opts...)
	}}, node(orphaned(photo, from(lost))))
	if _, made, err := AdoptSnapshot(t.Context(), c, SnapshotAdoption{Node: "n1", Name: photo}); err == nil || made {
		t.Errorf("made %v, %v", made, err)
	}
	got := &v1alpha1.Snapshot{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: photo}, got); err != nil || got.Spec.Adopted {
		t.Errorf("%+v, %v", got.Spec, err)
	}
}

// contentFor is a VolumeSnapshotContent that names a snapshot in one field.
func contentFor(t *testing.T, handle string, field ...string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"driver": v1alpha1.LocalDriverName}}}
	o.SetGroupVersionKind(schedule.VolumeSnapshotContentKind)
	o.SetName("content")
	if err := unstructured.SetNestedField(o.Object, handle, field...); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestASnapshotIsReachedByOneVolumeSnapshotAtMost(t *testing.T) {
	as := types.NamespacedName{Namespace: "shop", Name: "nightly"}
	contentOfAnother := contentFor(t, photo, "status", "snapshotHandle")
	if err := unstructured.SetNestedField(contentOfAnother.Object, "another.example.org", "spec", "driver"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		content *unstructured.Unstructured
		refused bool
	}{
		"no content refers to the snapshot":                 {},
		"a content refers to another snapshot":              {content: contentFor(t, "snap-x", "status", "snapshotHandle")},
		"a content belongs to another driver":               {content: contentOfAnother},
		"the snapshotter made the content of the snapshot":  {content: contentFor(t, photo, "status", "snapshotHandle"), refused: true},
		"an administrator made the content of the snapshot": {content: contentFor(t, photo, "spec", "source", "snapshotHandle"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{node(orphaned(photo, from(lost)))}
			if tc.content != nil {
				objects = append(objects, tc.content)
			}
			c := cluster(t, interceptor.Funcs{}, objects...)
			made, err := VolumeSnapshot(t.Context(), c, photoOf("n1"), as)
			if errors.Is(err, ErrRefused) != tc.refused || (err == nil) == tc.refused || (len(made) == 2) == tc.refused {
				t.Fatalf("%v, %v", made, err)
			}
			if _, err := Forget(t.Context(), c, "n1", photo, since.Time); errors.Is(err, ErrRefused) != tc.refused {
				t.Errorf("forgetting it: %v", err)
			}
		})
	}
}

func TestAClusterWithoutTheSnapshotAPIHasNothingThatRefersToASnapshot(t *testing.T) {
	c := cluster(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*unstructured.UnstructuredList); ok {
			return &meta.NoKindMatchError{}
		}
		return c.List(ctx, list, opts...)
	}}, node(orphaned(photo, from(lost))))
	if _, err := Forget(t.Context(), c, "n1", photo, since.Time); err != nil {
		t.Error(err)
	}
}
