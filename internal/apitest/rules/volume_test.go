package rules

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// change is one step of a volume's life, or one attempt at it.
type change func(*v1alpha1.Volume)

// newVolume wants replicas on n1 and n2 and is named after its test.
func newVolume(t *testing.T, changes ...change) *v1alpha1.Volume {
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(t.Name())},
		Spec: v1alpha1.VolumeSpec{
			Capacity:    resource.MustParse("10Gi"),
			VolumeMode:  v1alpha1.Filesystem,
			FSType:      v1alpha1.Ext4,
			PoolClass:   "fast",
			Sharing:     v1alpha1.Exclusive,
			Placement:   v1alpha1.PlacementVolume,
			Replication: v1alpha1.Replication{Factor: 2},
		},
	}
	wanted("n1", "n2")(v)
	for _, c := range changes {
		c(v)
	}
	return v
}

// live creates a volume and takes its status through the steps, one write each.
func live(t *testing.T, c client.Client, v *v1alpha1.Volume, steps ...change) *v1alpha1.Volume {
	t.Helper()
	if err := c.Create(t.Context(), v); err != nil {
		t.Fatalf("creating the volume: %v", err)
	}
	for i, step := range steps {
		step(v)
		if err := c.Status().Update(t.Context(), v); err != nil {
			t.Fatalf("step %d before the request: %v", i+1, err)
		}
	}
	return v
}

// unchanged checks that the volume at the API server is still the same.
func unchanged(t *testing.T, c client.Client, want *v1alpha1.Volume) {
	t.Helper()
	got := &v1alpha1.Volume{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(want), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("a refused request changed the status (-before +after):\n%s", diff)
	}
}

func all(changes ...change) change {
	return func(v *v1alpha1.Volume) {
		for _, c := range changes {
			c(v)
		}
	}
}

func wanted(nodes ...string) change {
	return func(v *v1alpha1.Volume) {
		v.Spec.Replicas = nil
		for _, node := range nodes {
			v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: node, Pool: "vg"})
		}
	}
}

func capacity(size string) change {
	return func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse(size) }
}

func ready(nodes ...string) change {
	return func(v *v1alpha1.Volume) {
		for _, node := range nodes {
			size := resource.MustParse("10Gi")
			entry(node, func(r *v1alpha1.ReplicaStatus) {
				r.Pool, r.State, r.Ready, r.Capacity = "vg", v1alpha1.ReplicaReady, true, &size
			})(v)
		}
	}
}

func gone(node string) change {
	return entry(node, func(r *v1alpha1.ReplicaStatus) {
		*r = v1alpha1.ReplicaStatus{Node: node, State: v1alpha1.ReplicaGone}
	})
}

func failed(node string) change {
	return entry(node, func(r *v1alpha1.ReplicaStatus) {
		r.State, r.Ready, r.Capacity = v1alpha1.ReplicaFailed, false, nil
	})
}

func copying(node string) change {
	return entry(node, func(r *v1alpha1.ReplicaStatus) { r.State, r.Ready = v1alpha1.ReplicaCopying, false })
}

func dropped(node string) change {
	return func(v *v1alpha1.Volume) {
		v.Status.Replicas = slices.DeleteFunc(v.Status.Replicas, func(r v1alpha1.ReplicaStatus) bool { return r.Node == node })
	}
}

// entry edits the entry of a node, and makes it if needed.
func entry(node string, edit func(*v1alpha1.ReplicaStatus)) change {
	return func(v *v1alpha1.Volume) {
		i := slices.IndexFunc(v.Status.Replicas, func(r v1alpha1.ReplicaStatus) bool { return r.Node == node })
		if i < 0 {
			v.Status.Replicas = append(v.Status.Replicas, v1alpha1.ReplicaStatus{Node: node, State: v1alpha1.ReplicaFailed})
			i = len(v.Status.Replicas) - 1
		}
		edit(&v.Status.Replicas[i])
	}
}
