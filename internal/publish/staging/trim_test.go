package staging

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// staged is where the kubelet stages a volume.
const staged = "plugins/kubernetes.io/csi/local.berth.dev/0a/globalmount"

func (n *node) stageAt(t *testing.T, path string) {
	t.Helper()
	if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path(path), Block: n.specs[id].VolumeMode == v1alpha1.Block}); err != nil {
		t.Fatal(err)
	}
}

func TestAStagedFilesystemIsTrimmedByParts(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stageAt(t, staged)
	for _, tc := range []struct {
		start, length, next int64
	}{{0, 32 * mib, 32 * mib}, {32 * mib, 32 * mib, 0}, {0, 1024 * mib, 0}} {
		if got, err := n.Trim(t.Context(), id, tc.start, tc.length); err != nil || got.Next != tc.next {
			t.Errorf("from %d: %+v, %v", tc.start, got, err)
		}
	}
}

func TestOnlyAStagedFilesystemOfTheVolumeIsTrimmed(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(t *testing.T, n *node)
		want error
	}{
		"the volume was never staged":            {func(t *testing.T, n *node) { n.volume(t, id, "ext4") }, ErrNotStaged},
		"the volume is mounted at no such place": {func(t *testing.T, n *node) { n.volume(t, id, "ext4"); n.stageAt(t, "stage") }, ErrNotStaged},
		"the volume was unstaged": {func(t *testing.T, n *node) {
			n.volume(t, id, "ext4")
			n.stageAt(t, staged)
			if err := n.Unstage(t.Context(), id, n.path(staged)); err != nil {
				t.Fatal(err)
			}
		}, ErrNotStaged},
		"the volume is a raw block volume": {func(t *testing.T, n *node) {
			n.volume(t, id, "")
			n.stage(t, id)
			n.publish(t, id, "plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/pod-1")
		}, provision.ErrUnsupported},
		"there is no such volume": {func(*testing.T, *node) {}, provision.ErrNotFound},
		"the volume has a problem": {func(t *testing.T, n *node) {
			n.volume(t, id, "ext4")
			n.stageAt(t, staged)
			n.problems[id] = "its metadata is damaged"
		}, provision.ErrUnavailable},
		"its object names another pool": {func(t *testing.T, n *node) {
			n.volume(t, id, "ext4")
			n.stageAt(t, staged)
			n.specs[id].Replicas[0].Pool = "evil"
		}, provision.ErrConflict},
		"the mount table cannot be read": {func(t *testing.T, n *node) {
			n.volume(t, id, "ext4")
			n.stageAt(t, staged)
			n.fails["table"] = provision.ErrUnavailable
		}, provision.ErrUnavailable},
		"the path of the device leads to another one": {func(t *testing.T, n *node) {
			n.volume(t, id, "ext4")
			n.stageAt(t, staged)
			n.identity = new(provision.Identity("another"))
		}, provision.ErrUnavailable},
		"the node has given the volume up": {func(t *testing.T, n *node) {
			n.volume(t, id, "ext4")
			n.stageAt(t, staged)
			n.owner = refusing{OneCopy{Locks: n.locks}}
			n.restart()
		}, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			tc.set(t, n)
			if got, err := n.Trim(t.Context(), id, 0, mib); !errors.Is(err, tc.want) {
				t.Errorf("%+v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

// refusing is the Owner of a node that holds nothing any more.
type refusing struct{ OneCopy }

func (refusing) Holds(context.Context, string, string, func(context.Context) error) error {
	return provision.ErrUnavailable
}

// A trim is no call of the kubelet: it neither refuses one nor waits for one.
func TestATrimHindersNoCallOfTheKubelet(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stageAt(t, staged)
	n.meanwhile = func() {
		if _, err := n.Trim(t.Context(), id, 0, mib); err != nil {
			t.Errorf("during a call: %v", err)
		}
	}
	if _, err := n.Expand(t.Context(), id, n.path(staged), mib); err != nil {
		t.Error(err)
	}
}
