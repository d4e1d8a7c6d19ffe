package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/controller/volumes"
	"berth.dev/berth/internal/ledger"
)

func TestNobodyMakesABlankVolumeForAClaimThatIsToHaveData(t *testing.T) {
	group := "snapshot.storage.k8s.io"
	ref := func(kind, name string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: kind, Name: name}
		}
	}
	old := func(kind, name string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: kind, Name: name}
		}
	}
	elsewhere := "other"
	tests := map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		beside string
		blank  bool
	}{
		"it begins blank":                     {change: func(*corev1.PersistentVolumeClaim) {}, blank: true},
		"a populator fills it":                {change: ref("Image", "x")},
		"it restores a snapshot":              {change: ref("VolumeSnapshot", "x")},
		"it restores one, in the older field": {change: old("VolumeSnapshot", "x")},
		"it clones a claim":                   {change: ref("PersistentVolumeClaim", "source"), beside: "pvc-" + string(uidOf("source"))},
		"it clones one, in the older field":   {change: old("PersistentVolumeClaim", "source"), beside: "pvc-" + string(uidOf("source"))},
		"it clones a claim that is not bound": {change: ref("PersistentVolumeClaim", "young")},
		"it clones a claim that is not there": {change: ref("PersistentVolumeClaim", "nobody")},
		"it clones a claim of another namespace": {change: func(c *corev1.PersistentVolumeClaim) {
			ref("PersistentVolumeClaim", "source")(c)
			c.Spec.DataSourceRef.Namespace = &elsewhere
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pv := pvFor("source", "n1")
			c := pvc("1", gi, test.change)
			got := read(t, shop(c, pvc("source", gi, boundTo(pv.Name)), pvc("young", gi)).with(pv, nil), podWith(claimVolume("1")))
			if len(got.Wanted) != 1 || got.Unready != "" {
				t.Fatalf("got %+v", got)
			}
			w := got.Wanted[0]
			if w.Populated == test.blank || cmp.Equal(w.Request, volumes.Request{}, cmpopts.EquateEmpty()) == test.blank {
				t.Errorf("it is marked %t, with the request %+v", w.Populated, w.Request)
			}
			want := ledger.Demand{Owner: ledger.Claim(string(c.UID)), Class: "fast", Bytes: gi, Source: test.beside}
			if diff := cmp.Diff(want, w.Demand); diff != "" {
				t.Error(diff)
			}
		})
	}
}
