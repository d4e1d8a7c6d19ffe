package staging

import (
	"context"
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestABlankVolumeIsFormattedOnceAndMounted(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "xfs")
	for range 2 {
		n.stage(t, id)
	}
	if got := n.record(t, id).Filesystem; got != "xfs" {
		t.Errorf("filesystem %q", got)
	}
	if got := n.mounts.Mounts(n.record(t, id).Content.Source); len(got) != 1 {
		t.Errorf("mounted at %v; want one place", got)
	}
}

func TestAFilesystemIsMadeWithTheOptionsOfItsVolume(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.specs[id].MkfsOptions = "-I 512"
	n.stage(t, id)
	if got := n.mkfsOptions[id]; got != "-I 512" {
		t.Errorf("made with %q", got)
	}
}

func TestAVolumeIsFormattedOnlyAsItsSpecSays(t *testing.T) {
	adopted := spec("ext4", vg0)
	adopted.Adopted = true
	block := spec("", vg0)
	block.FSType = "ext4"
	tests := map[string]struct {
		spec  *v1alpha1.VolumeSpec
		asked string
		want  error
		says  string
	}{
		"the Volume is not known yet":                                {want: provision.ErrUnavailable},
		"the Volume wants raw block":                                 {spec: spec("", vg0), want: provision.ErrInvalid, says: "is a raw block volume"},
		"the Volume wants raw block with the filesystem ext4":        {spec: block, want: provision.ErrInvalid, says: "is a raw block volume"},
		"the call asks for another filesystem than the Volume":       {spec: spec("ext4", vg0), asked: "xfs", want: provision.ErrInvalid, says: "is to bear ext4, not xfs"},
		"the Volume was adopted":                                     {spec: adopted, want: provision.ErrConflict},
		"the Volume wants ext4, and the call asks for no filesystem": {spec: spec("ext4", vg0)},
		"the Volume wants ext4, and the call asks for ext4":          {spec: spec("ext4", vg0), asked: "ext4"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.volume(t, id, "ext4")
			n.specs[id] = tc.spec
			err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage"), Filesystem: tc.asked})
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil || tc.says != "" && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v; want %v that says %q", err, tc.want, tc.says)
			}
			if formatted := n.record(t, id).Filesystem != ""; formatted != (tc.want == nil) {
				t.Errorf("formatted: %v", formatted)
			}
		})
	}
}

func TestAFormattedVolumeIsStagedWithoutKnowingItsObject(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil {
		t.Fatal(err)
	}
	clear(n.specs) // the API server is away and the agent began anew
	n.restart()
	for _, asked := range []string{"", "ext4"} {
		if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage"), Filesystem: asked}); err != nil {
			t.Errorf("%q asked: %v", asked, err)
		}
	}
	if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage"), Filesystem: "xfs"}); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("error %v; want %v for another filesystem", err, provision.ErrInvalid)
	}
}

func TestStagingNeverCreatesAVolume(t *testing.T) {
	n := newNode(t)
	for what, request := range map[string]StageRequest{
		"an unknown volume":           {ID: id, Path: n.path("stage")},
		"an unknown raw block volume": {ID: id, Path: n.path("stage"), Block: true},
		"a foreign id":                {ID: "../../etc", Path: n.path("stage")},
		"an empty id":                 {Path: n.path("stage")},
		"a name of an LVM volume":     {ID: "lvol0", Path: n.path("stage")},
		"an option as id":             {ID: "-y", Path: n.path("stage")},
	} {
		if err := n.Stage(t.Context(), request); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("%s: error %v; want %v", what, err, provision.ErrNotFound)
		}
	}
	if exists(n.path("stage")) {
		t.Error("a staging directory was made")
	}
	if pools, _ := n.pool.Report(t.Context()); len(pools[0].Volumes) != 0 {
		t.Errorf("volumes %v were made", pools[0].Volumes)
	}
}

func TestAVolumeThatGrewOfflineIsGrownWhenStaged(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	n.stage(t, id)
	if err := n.Unstage(t.Context(), id, n.path("stage-"+id)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.pool.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 128 * mib}); err != nil {
		t.Fatal(err)
	}
	n.stage(t, id)
	figures, err := n.Stats(t.Context(), id, n.path("stage-"+id))
	if err != nil || figures.Total != 128*mib {
		t.Errorf("total %d, %v; want %d", figures.Total, err, 128*mib)
	}
}

func TestARawBlockVolumeIsNeitherFormattedNorMountedByStage(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "")
	for range 2 {
		n.stage(t, id)
		record := n.record(t, id)
		if n.disks.Formats(id) != 0 || len(n.mounts.Mounts(record.Content.Source)) != 0 {
			t.Errorf("formatted %d times, mounts %v", n.disks.Formats(id), n.mounts.Mounts(record.Content.Source))
		}
	}
}

func TestARawBlockVolumeIsRecordedAsGivenBeforeAPodHasIt(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "")
	n.hang = func(subject string) bool { return subject == id }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := StageRequest{ID: id, Path: n.path("stage-" + id), Block: true}
	if err := n.Stage(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v: it is staged, and not recorded", err)
	}
	n.hang = nil
	n.stage(t, id)
	if got := n.record(t, id).Filesystem; got != provision.Raw {
		t.Errorf("recorded as %q", got)
	}
	n.hang = func(subject string) bool { return subject == id }
	n.stage(t, id) // it is recorded, and no disk is accessed
}

func TestOnlyARawBlockVolumeIsGivenToAPodAsItIs(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "ext4")
	r := StageRequest{ID: id, Path: n.path("stage-" + id), Block: true}
	if err := n.Stage(t.Context(), r); !errors.Is(err, provision.ErrInvalid) || n.record(t, id).Filesystem != "" {
		t.Errorf("error %v; recorded as %q", err, n.record(t, id).Filesystem)
	}
	n.stage(t, id) // the filesystem can still be made
	clear(n.specs)
	if err := n.Stage(t.Context(), r); !errors.Is(err, provision.ErrInvalid) || n.record(t, id).Filesystem != provision.Ext4 {
		t.Errorf("once it is made: error %v; recorded as %q", err, n.record(t, id).Filesystem)
	}
}

func TestARawBlockVolumeIsGivenWhileItsObjectIsNotKnown(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "")
	clear(n.specs)
	if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage"), Block: true}); err != nil {
		t.Error(err)
	}
	if err := n.Publish(t.Context(), PublishRequest{ID: id, Target: n.path("dev1"), Block: true}); err != nil {
		t.Errorf("it needs no staging path: %v", err)
	}
}

func TestAVolumeThatAPodHadAsARawBlockDeviceIsNotFormatted(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "")
	n.stage(t, id)
	for what, known := range map[string]*v1alpha1.VolumeSpec{"the Volume wants ext4": spec("ext4", vg0), "the Volume wants raw block": spec("", vg0), "unknown": nil} {
		n.specs[id] = known
		for _, asked := range []string{"", "ext4", provision.Raw} {
			err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage"), Filesystem: asked})
			if !errors.Is(err, provision.ErrInvalid) || !strings.Contains(err.Error(), "its data would be lost") || len(n.mounts.Mounts(n.record(t, id).Content.Source)) != 0 {
				t.Errorf("%s, %q asked: error %v", what, asked, err)
			}
		}
	}
	if got := n.record(t, id).Filesystem; got != provision.Raw || n.disks.Formats(id) != 0 {
		t.Errorf("recorded as %q, formatted %d times", got, n.disks.Formats(id))
	}
}

// A disk that a pod holds open cannot be written to, and the kubelet stages volumes of running
// pods again.
func TestAVolumeThatAPodHasSinceAnOlderBerthIsStagedAgainWhileItIsOpen(t *testing.T) {
	n := newNode(t)
	n.volume(t, id, "")
	n.open = true
	r := StageRequest{ID: id, Path: n.path("stage-" + id), Block: true}
	if err := n.Stage(t.Context(), r); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("error %v; want %v: no pod has it", err, provision.ErrInUse)
	}
	n.publish(t, id, "dev1")
	n.stage(t, id)
	if err := n.Unpublish(t.Context(), id, n.path("dev1")); err != nil {
		t.Fatal(err)
	}
	n.open = false
	n.stage(t, id)
	if got := n.record(t, id).Filesystem; got != provision.Raw {
		t.Errorf("recorded as %q", got)
	}
}

func TestUnstageNeedsNeitherVolumeNorMount(t *testing.T) {
	n := newNode(t)
	for range 2 {
		if err := n.Unstage(t.Context(), id, n.path("stage")); err != nil {
			t.Error(err)
		}
	}
}
