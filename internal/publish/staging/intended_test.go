package staging

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// use stages and publishes a volume and returns the error of each call.
func (n *node) use(t *testing.T) map[string]error {
	t.Helper()
	return map[string]error{
		"stage":   n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id), Block: n.specs[id].VolumeMode == v1alpha1.Block}),
		"publish": n.Publish(t.Context(), n.publication(id, "pod1")),
	}
}

func TestAVolumeIsUsedOnlyInThePoolThatItsObjectNames(t *testing.T) {
	for name, tc := range map[string]struct {
		fs       string
		replicas []v1alpha1.ReplicaSpec
		want     error
	}{
		"the object names another pool of this node":            {"ext4", []v1alpha1.ReplicaSpec{{Node: here, Pool: "evil"}}, provision.ErrConflict},
		"the object names a thin pool of the same volume group": {"ext4", []v1alpha1.ReplicaSpec{{Node: here, Pool: vg0.Name + "/thin"}}, provision.ErrConflict},
		"the object of a raw volume names another pool":         {"", []v1alpha1.ReplicaSpec{{Node: here, Pool: "evil"}}, provision.ErrConflict},
		"the object names the same pool of another node":        {"ext4", []v1alpha1.ReplicaSpec{{Node: "node-2", Pool: vg0.Name}}, provision.ErrUnavailable},
		"the object names this pool and a pool of another node": {"ext4", []v1alpha1.ReplicaSpec{{Node: "node-2", Pool: "evil"}, {Node: here, Pool: vg0.Name}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.volume(t, id, tc.fs)
			n.specs[id].Replicas = tc.replicas
			for call, err := range n.use(t) {
				if tc.want == nil && err != nil || !errors.Is(err, tc.want) {
					t.Errorf("%s: %v; want %v", call, err, tc.want)
				}
				if tc.want != nil && !strings.Contains(err.Error(), vg0.Name) {
					t.Errorf("%s: %v; want it to name the pool in which the volume is", call, err)
				}
			}
			used := n.disks.Formats(id) > 0 || len(n.mounts.Mounts(n.record(t, id).Content.Source)) > 0
			if used != (tc.want == nil) {
				t.Errorf("the volume is used: %v", used)
			}
		})
	}
}

func TestAPodGetsItsVolumeBackWhileTheObjectIsNotKnown(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	publication := n.publication(id, "pod1")
	clear(n.specs)
	n.restart()
	if err := n.Publish(t.Context(), publication); err != nil {
		t.Error(err)
	}
}

func TestAVolumeWithAProblemIsNotUsed(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.problems[id] = "its device is suspended"
	calls := n.use(t)
	calls["figures"], calls["growing"] = figures(t.Context(), n), grown(t.Context(), n)
	for call, err := range calls {
		if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), n.problems[id]) {
			t.Errorf("%s: %v; want %v with the problem", call, err, provision.ErrUnavailable)
		}
	}
	if n.disks.Formats(id) > 0 || len(n.mounts.Mounts(n.record(t, id).Content.Source)) > 0 {
		t.Error("it was used all the same")
	}
}
