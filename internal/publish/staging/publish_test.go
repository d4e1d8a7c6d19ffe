package staging

import (
	"errors"
	"os"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestPublishAndUnpublishAreIdempotentAndLeaveNothing(t *testing.T) {
	for name, fs := range map[string]string{"filesystem": "ext4", "block": ""} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.volume(t, id, fs)
			n.stage(t, id)
			for range 2 {
				n.publish(t, id, "pod1")
				n.restart()
			}
			info, err := os.Stat(n.path("pod1"))
			if err != nil || info.IsDir() == (fs == "") {
				t.Errorf("target %v, %v", info, err)
			}
			for range 2 {
				if err := n.Unpublish(t.Context(), id, n.path("pod1")); err != nil {
					t.Fatal(err)
				}
				n.restart()
			}
			if exists(n.path("pod1")) {
				t.Error("the target is still there")
			}
		})
	}
}

func TestPublishWithoutStageIsRefused(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	err := n.Publish(t.Context(), n.publication(id, "pod1"))
	if !errors.Is(err, ErrNotStaged) {
		t.Errorf("error %v; want %v", err, ErrNotStaged)
	}
	if exists(n.path("pod1")) {
		t.Error("an empty target was made")
	}
}

func TestPublishOfALostVolumeIsAnError(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	n.disks.RemovePool(vg0)
	if err := n.Publish(t.Context(), n.publication(id, "pod1")); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("error %v; want %v", err, provision.ErrNotFound)
	}
}

func TestAPodCanEndAlthoughItsVolumeIsLost(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	n.publish(t, id, "pod1")
	n.disks.RemovePool(vg0)
	if err := n.Unpublish(t.Context(), id, n.path("pod1")); err != nil {
		t.Error(err)
	}
	if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil {
		t.Error(err)
	}
}

func TestASingleWriterHasOneTarget(t *testing.T) {
	for name, fs := range map[string]string{"filesystem": "ext4", "block": ""} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.volume(t, id, fs)
			n.stage(t, id)
			first, second := n.publication(id, "pod1"), n.publication(id, "pod2")
			first.Exclusive, second.Exclusive = true, true
			for range 2 {
				if err := n.Publish(t.Context(), first); err != nil {
					t.Fatal(err)
				}
				n.restart()
			}
			if err := n.Publish(t.Context(), second); !errors.Is(err, provision.ErrInUse) {
				t.Errorf("error %v; want %v", err, provision.ErrInUse)
			}
			if exists(n.path("pod2")) {
				t.Error("the second target was made")
			}
			if err := n.Unpublish(t.Context(), id, first.Target); err != nil {
				t.Fatal(err)
			}
			if err := n.Publish(t.Context(), second); err != nil {
				t.Errorf("after the first pod ended: %v", err)
			}
		})
	}
}

// The kubelet binds what it was given once more, and after its restart it publishes again.
func TestWhatTheKubeletBindsForASingleWriterIsNoSecondPod(t *testing.T) {
	for name, test := range map[string]struct{ fs, target, again string }{
		"a raw device": {"", "volumeDevices/publish/pvc-1/uid-1", "volumeDevices/pvc-1/dev/uid-1"},
		"a subPath":    {"ext4", "pods/uid-1/volumes/pvc-1/mount", "pods/uid-1/volume-subpaths/pvc-1/c/0"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.volume(t, id, test.fs)
			n.stage(t, id)
			first, second := n.publication(id, test.target), n.publication(id, "pod2")
			first.Exclusive, second.Exclusive = true, true
			if err := n.Publish(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			n.kubeletBinds(t, first, test.again)
			n.restart()
			if err := n.Publish(t.Context(), first); err != nil {
				t.Errorf("to its own target once more: %v", err)
			}
			for range 2 { // while the first pod has it, and while only the kubelet's bind is left of that
				if err := n.Publish(t.Context(), second); !errors.Is(err, provision.ErrInUse) || exists(second.Target) {
					t.Errorf("to a second pod: %v; want %v and no target", err, provision.ErrInUse)
				}
				if err := n.Unpublish(t.Context(), id, first.Target); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.mounts.Unmount(t.Context(), n.path(test.again)); err != nil {
				t.Fatal(err)
			}
			if err := n.Publish(t.Context(), second); err != nil {
				t.Errorf("to a second pod after the first one ended: %v", err)
			}
		})
	}
}

// kubeletBinds binds what was published at a second path, without Berth.
func (n *node) kubeletBinds(t *testing.T, published PublishRequest, path string) {
	t.Helper()
	b := mount.BindRequest{Content: n.record(t, published.ID).Content, Target: n.path(path)}
	if !published.Block {
		b.Source = published.Target
	}
	if err := n.mounts.Bind(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func TestManyPodsOfOneNodeShareAVolume(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	n.publish(t, id, "pod1")
	n.publish(t, id, "pod2")
}

func TestPodsOfOneNodeReadAVolumeThatOneOfThemWrites(t *testing.T) {
	for name, fs := range map[string]string{"filesystem": "ext4", "block": ""} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.volume(t, id, fs)
			n.stage(t, id)
			n.publish(t, id, "writer")
			for _, pod := range []string{"reader1", "reader2"} {
				r := n.publication(id, pod)
				r.ReadOnly = true
				for range 2 {
					if err := n.Publish(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				r.ReadOnly = false
				if err := n.Publish(t.Context(), r); !errors.Is(err, provision.ErrConflict) {
					t.Errorf("%s can be made a writer: %v", pod, err)
				}
			}
		})
	}
}

func TestAVolumeStagedForReadersIsNeverPublishedForWriters(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id), ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	n.publish(t, id, "pod1") // without ReadOnly: the filesystem keeps its own mode
	r := n.publication(id, "pod1")
	r.ReadOnly = true
	if err := n.Publish(t.Context(), r); err != nil {
		t.Errorf("it is not read-only: %v", err)
	}
	err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id)})
	if !errors.Is(err, provision.ErrConflict) {
		t.Errorf("staging it for writers at once: %v; want %v", err, provision.ErrConflict)
	}
}

func TestAVolumeHasOneSELinuxContextForAllPods(t *testing.T) {
	const one, other = "u:r:t:s0:c1,c2", "u:r:t:s0:c1,c3"
	n := newNode(t)
	n.volume(t, id, "ext4")
	staged := StageRequest{ID: id, Path: n.path("stage-" + id), Options: []string{`context="` + one + `"`}}
	for range 2 {
		if err := n.Stage(t.Context(), staged); err != nil {
			t.Fatal(err)
		}
		n.restart()
	}
	r := n.publication(id, "pod1")
	r.Context = one
	if err := n.Publish(t.Context(), r); err != nil {
		t.Error(err)
	}
	r = n.publication(id, "pod2")
	r.Context = other
	if err := n.Publish(t.Context(), r); !errors.Is(err, provision.ErrConflict) || exists(r.Target) {
		t.Errorf("publishing with another context: %v; want %v and no target", err, provision.ErrConflict)
	}
	staged.Options = []string{`context="` + other + `"`}
	if err := n.Stage(t.Context(), staged); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("staging with another context: %v; want %v", err, provision.ErrConflict)
	}
}

func TestAnotherWayToMountTheSameTargetIsAConflict(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	n.publish(t, id, "pod1")
	r := n.publication(id, "pod1")
	r.ReadOnly = true
	if err := n.Publish(t.Context(), r); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("error %v; want %v", err, provision.ErrConflict)
	}
}

func TestAFilesystemIsNotHandedOutAsARawDevice(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	r := n.publication(id, "pod1")
	r.Block = true
	if err := n.Publish(t.Context(), r); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("error %v; want %v", err, provision.ErrInvalid)
	}
}

func TestUnpublishNeverRemovesData(t *testing.T) {
	n := newNode(t)
	if err := os.MkdirAll(n.path("pod1/data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := n.Unpublish(t.Context(), id, n.path("pod1")); err == nil || !exists(n.path("pod1/data")) {
		t.Errorf("error %v, data there: %v", err, exists(n.path("pod1/data")))
	}
}
