package usecase_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// saying is an API server with the report of node n's agent, which names these features.
func saying(t *testing.T, features ...string) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	report := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1alpha1.StorageNodeStatus{Features: features}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(report).Build()
}

func TestAnAgentIsAskedForTheCopiesThatItSaysItMakes(t *testing.T) {
	for name, tc := range map[string]struct {
		features []string
		may      map[string]bool
	}{
		"an agent without features": {nil, map[string]bool{"vg0": false, "vg0/thin": false, "zfs:tank/berth": false}},
		"an agent from before copies of thick volumes": {
			[]string{v1alpha1.FeatureCopies}, map[string]bool{"vg0": false, "vg0/thin": true, "zfs:tank/berth": true},
		},
		"an agent of this version": {v1alpha1.AllFeatures(), map[string]bool{"vg0": true, "vg0/thin": true, "zfs:tank/berth": true}},
	} {
		t.Run(name, func(t *testing.T) {
			for pool, may := range tc.may {
				err := usecase.MayCopy(t.Context(), saying(t, tc.features...), "n", pool)
				if may != (err == nil) || err != nil && !errors.Is(err, provision.ErrUnavailable) {
					t.Errorf("copies in %s: %v", pool, err)
				}
			}
		})
	}
}

func TestAnAgentThatHasNotReportedIsAskedForNothing(t *testing.T) {
	if err := usecase.MayCopy(t.Context(), saying(t), "silent", "vg0"); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
