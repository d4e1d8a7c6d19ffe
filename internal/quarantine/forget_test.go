package quarantine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// named returns the names in spec.forget of n1.
func named(t *testing.T, c client.Client) (names []string) {
	t.Helper()
	n := &v1alpha1.StorageNode{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n1"}, n); err != nil {
		t.Fatal(err)
	}
	for _, f := range n.Spec.Forget {
		names = append(names, f.Name)
	}
	return names
}

func called(name string, pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	pv.Name = name
	return pv
}

func foreign(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "another.example.org" }

func local(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil }

func TestForget(t *testing.T) {
	notPlaced := func(o *v1alpha1.Orphan) { o.Reason = v1alpha1.OrphanNotPlaced }
	twice := node(orphaned(lost))
	twice.Status.Pools = append(twice.Status.Pools, v1alpha1.Pool{Name: "vg1", Inventory: []v1alpha1.InventoryItem{orphaned(lost)}})
	later := func(o *v1alpha1.Orphan) { o.Since = metav1.Unix(3000, 0) }
	moved := forgetting(node(orphaned(lost), orphaned(other)), other)
	moved.Spec.Forget = append(moved.Spec.Forget, v1alpha1.ForgottenOrphan{Pool: "vg1", Name: other, Size: resource.MustParse("1Gi"), Since: since})
	anew := waitingForPool("vg0")
	anew.DeletionTimestamp = new(metav1.Unix(3000, 0))
	for name, tc := range map[string]struct {
		objects []client.Object
		name    string   // lost, if empty
		want    []string // in spec.forget of the node
		refusal string
	}{
		"a volume":                                                  {objects: []client.Object{node(orphaned(lost))}, want: []string{lost}},
		"a snapshot":                                                {objects: []client.Object{node(orphaned(photo))}, name: photo, want: []string{photo}},
		"a volume beside a forgotten orphan":                        {objects: []client.Object{forgetting(node(orphaned(lost), orphaned(other)), other)}, want: []string{other, lost}},
		"a forgotten volume again":                                  {objects: []client.Object{forgetting(node(orphaned(lost)), lost)}, want: []string{lost}},
		"the order of a finished deletion is cleared":               {objects: []client.Object{forgetting(node(orphaned(lost)), other)}, want: []string{lost}},
		"a volume beside an orphan without an order":                {objects: []client.Object{node(orphaned(lost), orphaned(other))}, want: []string{lost}},
		"the order for data with an object again is cleared":        {objects: []client.Object{forgetting(node(orphaned(lost), v1alpha1.InventoryItem{Volume: other}), other)}, want: []string{lost}},
		"the order for data lost with the pool stays":               {objects: []client.Object{forgetting(node(orphaned(lost)), photo), waitingForPool("vg0")}, want: []string{photo, lost}},
		"the order for data lost with another pool is cleared":      {objects: []client.Object{forgetting(node(orphaned(lost)), photo), waitingForPool("vg1")}, want: []string{lost}},
		"the order for data that was deleted anew is cleared":       {objects: []client.Object{forgetting(node(orphaned(lost)), photo), anew}, want: []string{lost}},
		"the order for an orphan of another time is cleared":        {objects: []client.Object{forgetting(node(orphaned(lost), orphaned(other, later)), other)}, want: []string{lost}},
		"only the order for a gone orphan is cleared":               {objects: []client.Object{forgetting(node(orphaned(lost), orphaned(other)), photo, other)}, want: []string{other, lost}},
		"only the order for the pool without the orphan is cleared": {objects: []client.Object{moved}, want: []string{other, lost}},
		"data that a lost object did not know":                      {objects: []client.Object{node(orphaned(lost, notPlaced))}, want: []string{lost}},
		"the object of the snapshot exists again":                   {objects: []client.Object{node(orphaned(photo)), photoOf("n1")}, name: photo, refusal: "there is an object " + photo + " again"},
		"PersistentVolumes of other volumes exist": {objects: []client.Object{node(orphaned(lost)), called("a", exported(other)), called("b", exported(lost, foreign)), called("c", exported(lost, local))},
			want: []string{lost}},
		"an unknown node":                               {refusal: "node n1 does not report"},
		"an unknown orphan":                             {objects: []client.Object{node()}, refusal: "node n1 reports no orphan " + lost},
		"an orphan in two pools":                        {objects: []client.Object{twice}, refusal: "in pools vg0 and vg1"},
		"the object exists again":                       {objects: []client.Object{node(orphaned(lost)), volume(lost, "n1")}, refusal: "there is an object " + lost + " again"},
		"an object of an old backup names another node": {objects: []client.Object{node(orphaned(lost, notPlaced)), volume(lost, "n2")}, refusal: "does not know of node n1"},
		"a PersistentVolume refers to the volume":       {objects: []client.Object{node(orphaned(lost)), exported(lost)}, refusal: "PersistentVolume data refers to it"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, tc.objects...)
			if tc.name == "" {
				tc.name = lost
			}
			o, err := Forget(t.Context(), c, "n1", tc.name, time.Unix(4000, 0))
			if tc.refusal != "" {
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.refusal) {
					t.Errorf("error %v, want %q", err, tc.refusal)
				}
				return
			}
			if err != nil || o.Name != tc.name || o.Forgotten.Unix() != 4000 {
				t.Fatalf("%+v, %v", o, err)
			}
			if diff := cmp.Diff(tc.want, named(t, c)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheWordIsForTheOrphanThatIsReportedWhenItIsWritten(t *testing.T) {
	first := true
	funcs := interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if first { // another report comes between
			first = false
			n := node(orphaned(lost, func(o *v1alpha1.Orphan) { o.Since, o.Size = metav1.Unix(3000, 0), resource.MustParse("3Gi") }))
			n.ResourceVersion = o.GetResourceVersion()
			if err := c.Status().Update(ctx, n); err != nil {
				return err
			}
		}
		return c.Update(ctx, o, opts...)
	}}
	c := cluster(t, funcs, node(orphaned(lost)))
	o, err := Forget(t.Context(), c, "n1", lost, time.Unix(4000, 0))
	if err != nil || o.Since.Unix() != 3000 || o.Size.String() != "3Gi" {
		t.Fatalf("%+v, %v", o, err)
	}
	n := &v1alpha1.StorageNode{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n1"}, n); err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.ForgottenOrphan{{Pool: "vg0", Name: lost, Size: resource.MustParse("3Gi"), Since: metav1.Unix(3000, 0), At: metav1.Unix(4000, 0)}}
	if diff := cmp.Diff(want, n.Spec.Forget); diff != "" {
		t.Error(diff)
	}
}

func TestSayingItAgainRenewsTheWord(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, forgetting(node(orphaned(lost)), lost))
	if _, err := Forget(t.Context(), c, "n1", lost, time.Unix(4000, 0)); err != nil {
		t.Fatal(err)
	}
	if o, err := Lookup(t.Context(), c, "n1", lost); err != nil || o.Forgotten.Unix() != 4000 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestTheWordCanBeTakenBack(t *testing.T) {
	c := cluster(t, interceptor.Funcs{}, forgetting(node(orphaned(lost), orphaned(other)), lost, other))
	if was, err := Remember(t.Context(), c, "n1", lost); err != nil || !was {
		t.Errorf("%v, %v", was, err)
	}
	if diff := cmp.Diff([]string{other}, named(t, c)); diff != "" {
		t.Error(diff)
	}
	if was, err := Remember(t.Context(), c, "n1", lost); err != nil || was {
		t.Errorf("again: %v, %v", was, err)
	}
}
