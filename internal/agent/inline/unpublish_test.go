package inline

import (
	"context"
	"errors"
	"os"
	"testing"

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
	n := newNode(t)
	n.publish()
	n.Service.disks = unavailable{n.Service.disks}
	if err := n.Unpublish(t.Context(), h, n.target()); err != nil {
		t.Fatal(err)
	}
	if n.mounted() || n.record() == nil {
		t.Errorf("mounted %v, record %v; want the data to wait", n.mounted(), n.record())
	}
	n.kubeletForgets()
	n.here.Delete(uid)
	n.restart()
	n.sweep()
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
}

// unavailable are disks from which nothing can be deleted.
type unavailable struct{ Disks }

func (unavailable) Delete(context.Context, string) error { return provision.ErrUnavailable }

func TestUnpublishLeavesWhatIsStillMountedElsewhere(t *testing.T) {
	n := newNode(t)
	n.publish()
	second := n.dir + "/elsewhere"
	if err := n.mounts.Mount(t.Context(), mount.Request{Device: n.record().Device, Identity: n.record().Identity, Target: second, Filesystem: provision.Ext4}); err != nil {
		t.Fatal(err)
	}
	if err := n.Unpublish(t.Context(), h, n.target()); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("error %v; want %v", err, provision.ErrInUse)
	}
	if n.record() == nil {
		t.Error("the data was deleted")
	}
}

func TestUnpublishNeverRemovesWhatIsNotBerths(t *testing.T) {
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

// A device that a mount of another namespace holds need not look open.
func TestWhatTheMountTableShowsIsNotDeleted(t *testing.T) {
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
