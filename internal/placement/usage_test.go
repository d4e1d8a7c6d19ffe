package placement

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/api/v1alpha1"
)

func volume(capacity int64, nodes ...string) *v1alpha1.Volume {
	v := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{Capacity: quantity(capacity)}}
	v.Name = "v"
	for _, n := range nodes {
		v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: n, Pool: "vg"})
	}
	return v
}

func reported(v *v1alpha1.Volume, node string, state v1alpha1.ReplicaState, reason string, capacity, requested int64) *v1alpha1.Volume {
	entry := v1alpha1.ReplicaStatus{Node: node, Pool: "vg", State: state, Reason: reason, Requested: new(quantity(requested))}
	if capacity > 0 {
		entry.Capacity = new(quantity(capacity))
	}
	v.Status.Replicas = append(v.Status.Replicas, entry)
	return v
}

func TestUsageOf(t *testing.T) {
	tests := map[string]struct {
		volume *v1alpha1.Volume
		want   Usage
	}{
		"a volume that was just created counts before its node has answered": {
			volume: volume(5, "n"), want: Usage{{"n", "vg"}: {5}},
		},
		"a carved volume counts as large as it is": {
			volume: reported(volume(5, "n"), "n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, 8, 5), want: Usage{{"n", "vg"}: {8}},
		},
		"an expansion counts from the moment it is wanted": {
			volume: reported(volume(20, "n"), "n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, 8, 5), want: Usage{{"n", "vg"}: {20}},
		},
		"a refused expansion counts as what is there": {
			volume: reported(volume(20, "n"), "n", v1alpha1.ReplicaReady, v1alpha1.ReasonNoSpace, 8, 20), want: Usage{{"n", "vg"}: {8}},
		},
		"a refusal of an earlier size does not hide a new wish": {
			volume: reported(volume(10, "n"), "n", v1alpha1.ReplicaReady, v1alpha1.ReasonNoSpace, 8, 20), want: Usage{{"n", "vg"}: {10}},
		},
		"a refused volume takes nothing": {
			volume: reported(volume(5, "n"), "n", v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace, 0, 5), want: Usage{{"n", "vg"}: {0}},
		},
		"a replica that is not wanted any more counts until it is gone": {
			volume: reported(volume(5, "m"), "n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, 8, 5), want: Usage{{"m", "vg"}: {5}, {"n", "vg"}: {8}},
		},
		"a replica that is gone takes nothing": {
			volume: reported(volume(5, "m"), "n", v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved, 8, 5), want: Usage{{"m", "vg"}: {5}},
		},
		"a node wanted again counts although its last replica is gone": {
			volume: reported(volume(5, "n"), "n", v1alpha1.ReplicaGone, v1alpha1.ReasonRemoved, 8, 5), want: Usage{{"n", "vg"}: {5}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, UsageOf([]v1alpha1.Volume{*test.volume}, "")); diff != "" {
				t.Error(diff)
			}
			if got := UsageOf([]v1alpha1.Volume{*test.volume}, "v"); len(got) != 0 {
				t.Errorf("a volume competes with itself: %v", got)
			}
		})
	}
}

func TestWhatIsPlacedAlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Node {
			total := rapid.Int64Range(0, 64).Draw(t, "total") * mi
			return node(rapid.StringMatching("[a-d]").Draw(t, "name"), pool("vg", total, foreign(rapid.Int64Range(0, 32).Draw(t, "foreign")*mi)))
		}), 0, 4).Draw(t, "nodes")
		usage := Usage{}
		for _, n := range nodes {
			usage[PoolKey{n.Name, "vg"}] = rapid.SliceOfN(rapid.Int64Range(0, 16*mi), 0, 4).Draw(t, "used")
		}
		r := Request{
			PoolClass: "fast",
			Capacity:  rapid.Int64Range(1, 40*mi).Draw(t, "capacity"),
			Spare:     rapid.Int64Range(0, 8*mi).Draw(t, "spare"),
			Allowed:   rapid.SliceOf(rapid.StringMatching("[a-d]")).Draw(t, "allowed"),
		}

		got := Decide(r, nodes, usage)
		if got.Reason != Placed {
			if got.Message == "" {
				t.Fatalf("a refusal without a message: %+v", got)
			}
			return
		}
		if len(r.Allowed) > 0 && !slices.Contains(r.Allowed, got.Node) {
			t.Fatalf("%s is not among %v", got.Node, r.Allowed)
		}
		// Names may repeat in the generated nodes: one of them must fit.
		if !slices.ContainsFunc(nodes, func(n Node) bool {
			return n.Name == got.Node && usage.Free(n.Name, &n.Pools[0], r.Spare) >= RoundUp(r.Capacity, &n.Pools[0])
		}) {
			t.Fatalf("%+v does not fit", got)
		}
	})
}
