package staging

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestExpandGrowsTheFilesystemToItsDevice(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	n.publish(t, id, "pod1")
	if _, err := n.Expand(t.Context(), id, n.path("pod1"), 128*mib); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("error %v before the device grew; want %v", err, provision.ErrUnavailable)
	}
	if _, err := n.pool.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 128 * mib}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if size, err := n.Expand(t.Context(), id, n.path("pod1"), 128*mib); err != nil || size != 128*mib {
			t.Errorf("size %d, %v", size, err)
		}
	}
	figures, err := n.Stats(t.Context(), id, n.path("pod1"))
	if err != nil || figures.Total != 128*mib || figures.Inodes == 0 || figures.Block {
		t.Errorf("figures %+v, %v", figures, err)
	}
}

// Else an expansion of the claim would fail at every try, and no further pod could have it.
func TestAFilesystemThatOnlyReadersHaveIsExpandedOnceItIsWritable(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	r := StageRequest{ID: id, Path: n.path("stage-" + id), ReadOnly: true}
	total := func() int64 {
		t.Helper()
		figures, err := n.Stats(t.Context(), id, r.Path)
		if err != nil {
			t.Fatal(err)
		}
		return figures.Total
	}
	again := func(readOnly bool) {
		t.Helper()
		r.ReadOnly = readOnly
		if err := errors.Join(n.Unstage(t.Context(), id, r.Path), n.Stage(t.Context(), r)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.pool.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 128 * mib}); err != nil {
		t.Fatal(err)
	}
	again(true)
	n.publish(t, id, "pod1")
	for _, path := range []string{r.Path, n.path("pod1")} {
		if size, err := n.Expand(t.Context(), id, path, 128*mib); err != nil || size != 128*mib || total() != 64*mib {
			t.Errorf("read-only: size %d, %v, and the filesystem has %d; want it as it was", size, err, total())
		}
	}
	if err := n.Unpublish(t.Context(), id, n.path("pod1")); err != nil {
		t.Fatal(err)
	}
	again(false)
	if total() != 128*mib {
		t.Errorf("the filesystem has %d bytes once it is writable", total())
	}
}

func TestABlockVolumeHasATotalAndNothingToGrow(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "")
	n.publish(t, id, "dev1")
	for range 2 { // as an older Berth gave it to its pod, and as this one does
		figures, err := n.Stats(t.Context(), id, n.path("dev1"))
		if want := (Figures{Block: true, Stats: mount.Stats{Total: 64 * mib}}); err != nil || figures != want {
			t.Errorf("figures %+v, %v; want %+v", figures, err, want)
		}
		if size, err := n.Expand(t.Context(), id, n.path("dev1"), 64*mib); err != nil || size != 64*mib {
			t.Errorf("size %d, %v", size, err)
		}
		n.stage(t, id)
	}
	if n.grown[n.record(t, id).Content.Source] {
		t.Error("what the pod wrote to its device was taken for a filesystem, and grown")
	}
}

func TestABlockVolumeOfTwoPodsIsExpandedAfterThePodThatGotItLastHasEnded(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "")
	n.stage(t, id)
	n.publish(t, id, "dev1")
	n.publish(t, id, "dev2")
	if err := n.Unpublish(t.Context(), id, n.path("dev2")); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Expand(t.Context(), id, n.path("dev2"), 128*mib); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("error %v before the device grew; want %v", err, provision.ErrUnavailable)
	}
	if _, err := n.pool.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 128 * mib}); err != nil {
		t.Fatal(err)
	}
	if size, err := n.Expand(t.Context(), id, n.path("dev2"), 128*mib); err != nil || size != 128*mib {
		t.Errorf("size %d, %v", size, err)
	}
}

func TestAVolumeThatIsNotAtThePathIsNotFound(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.volume(t, other, "ext4")
	n.stage(t, id)
	n.stage(t, other)
	n.publish(t, id, "pod1")
	for what, at := range map[string]struct{ id, path string }{
		"a path without a mount":     {id, n.path("pod2")},
		"a relative path":            {id, "some/path"},
		"the path of another volume": {other, n.path("pod1")},
		"an unknown volume":          {"pvc-00000000-0000-0000-0000-00000000000f", n.path("pod1")},
		"a foreign id":               {"../../etc", n.path("pod1")},
	} {
		if _, err := n.Stats(t.Context(), at.id, at.path); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("stats of %s: %v; want %v", what, err, provision.ErrNotFound)
		}
		if _, err := n.Expand(t.Context(), at.id, at.path, 0); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("expand of %s: %v; want %v", what, err, provision.ErrNotFound)
		}
	}
}

// rescanned are disks that grow on a target, which the kernel learns when it asks.
type rescanned struct {
	Disks
	grow func() error
}

func (r rescanned) Rescan(context.Context, string) error { return r.grow() }

func TestADiskThatHasGrownOnItsTargetIsAskedForItsSize(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	asked := 0
	n.Service.disks = rescanned{n.Service.disks, func() error {
		if asked++; asked == 1 {
			return provision.ErrUnavailable
		}
		_, err := n.pool.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 128 * mib})
		return err
	}}
	if _, err := n.Expand(t.Context(), id, n.path("stage-"+id), 128*mib); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("a disk that does not answer: %v", err)
	}
	for range 2 {
		if size, err := n.Expand(t.Context(), id, n.path("stage-"+id), 128*mib); err != nil || size != 128*mib {
			t.Errorf("size %d, %v", size, err)
		}
	}
	if asked != 2 {
		t.Errorf("the disk was asked %d times, and was large enough after the second", asked)
	}
}
