package inline

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestUnpublishCanBeRepeatedAndNeedsNoVolume(t *testing.T) {
	n := newNode(t)
	n.publish()
	for range 3 {
		if err := n.Unpublish(t.Context(), h, n.target()); err != nil {
			t.Fatal(err)
		}
		n.restart()
	}
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
}

func TestAPodCanEndAlthoughItsPoolDoesNotWork(t *testing.T) {
	for what, breaks := range map[string]func(n *node){
		"the pool is not available":          func(n *node) { n.fails["Delete"] = provision.ErrUnavailable },
		"the pool is missing":                func(n *node) { n.fails["Delete"] = provision.ErrPoolMissing },
		"two pools have the volume":          func(n *node) { n.fails["Get"] = provision.ErrConflict },
		"it is found in two pools meanwhile": func(n *node) { n.fails["Delete"] = provision.ErrConflict },
		"the pool does not answer":           func(n *node) { n.Service.disks = hanging{n.Service.disks} },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.publish()
				breaks(n)
				if err := n.Unpublish(t.Context(), h, n.target()); err != nil {
					t.Fatal(err)
				}
				if n.mounted() || n.record() == nil {
					t.Errorf("mounted %v, record %v; want the data to wait", n.mounted(), n.record())
				}
				n.kubeletForgets()
				n.here.Delete(uid)
				n.clock.SetTime(n.clock.Now().Add(askInterval))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := n.Sweep(ctx, n.Pools()); err == nil || n.record() == nil || !n.marked() {
					t.Errorf("swept meanwhile: %v, record %v; want the data and its mark to wait", err, n.record())
				}
				clear(n.fails)
				n.restart()
				n.sweep()
				if got := n.left(); got != nothing {
					t.Errorf("left on the node: %s", got)
				}
			})
		})
	}
}

// The kubelet calls again after that, and the pool may answer by then.
func TestACallThatGivesUpBeforeThePoolAnswersIsNotToldThatTheVolumeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.publish()
		n.Service.disks = hanging{n.Service.disks}
		ctx, cancel := context.WithTimeout(t.Context(), removeTimeout/2)
		defer cancel()
		if err := n.Unpublish(ctx, h, n.target()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v; want %v", err, context.DeadlineExceeded)
		}
	})
}

// hanging are disks that do not answer Get.
type hanging struct{ Disks }

func (hanging) Get(ctx context.Context, _ string) (provision.Volume, error) {
	<-ctx.Done()
	return provision.Volume{}, ctx.Err()
}

func TestAVolumeWithoutADeviceIsNotMountedAndGoes(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.fails["table"] = provision.ErrNotFound
	if err := n.Unpublish(t.Context(), h, n.target()); err != nil {
		t.Fatal(err)
	}
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
}

func TestUnpublishKeepsAVolumeThatIsStillMountedElsewhere(t *testing.T) {
	n := newNode(t)
	n.publish()
	second := n.dir + "/elsewhere"
	if err := n.mounts.Mount(t.Context(), mount.Request{Content: n.record().Content, Target: second, Filesystem: provision.Ext4}); err != nil {
		t.Fatal(err)
	}
	if err := n.Unpublish(t.Context(), h, n.target()); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("error %v; want %v", err, provision.ErrInUse)
	}
	if n.record() == nil {
		t.Error("the data was deleted")
	}
}

func TestUnpublishNeverRemovesATargetThatHoldsOtherFiles(t *testing.T) {
	n := newNode(t)
	if err := os.MkdirAll(n.target()+"/data", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := n.Unpublish(t.Context(), h, n.target()); err == nil {
		t.Error("the target was removed with what was in it")
	}
	if _, err := os.Lstat(n.target() + "/data"); err != nil {
		t.Error(err)
	}
}

// A device may not look open although another mount namespace has it mounted.
func TestAVolumeThatTheMountTableShowsIsNotDeleted(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.Service.mounts = func(provision.Volume) ([]string, error) { return []string{"/elsewhere"}, nil }
	if err := n.Unpublish(t.Context(), h, n.target()); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("error %v; want %v", err, provision.ErrInUse)
	}
	if n.record() == nil {
		t.Error("the data was deleted")
	}
}
