package staging

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// copied makes a formatted volume and another one, of a size, that is a copy of it.
func copied(t *testing.T, fs string, size int64) *node {
	t.Helper()
	n := newNode(t)
	n.volume(t, id, fs)
	n.stage(t, id)
	r := provision.CreateRequest{ID: other, Pool: vg0, Size: size, Source: provision.Source{Volume: id}}
	if _, err := n.pool.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	n.specs[other] = spec(fs, vg0)
	n.specs[other].Source = &v1alpha1.VolumeSource{Volume: id}
	return n
}

func TestOnlyCopiesOfXFSAreMountedWithNouuid(t *testing.T) {
	for name, tc := range map[string]struct {
		fs, volume string
		want       bool
	}{
		"a copy of xfs":    {"xfs", other, true},
		"a source of xfs":  {"xfs", id, false},
		"a copy of ext4":   {"ext4", other, false},
		"a source of ext4": {"ext4", id, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := copied(t, tc.fs, 64*mib)
			n.stage(t, other)
			if got := slices.Contains(n.options[n.record(t, tc.volume).Content.Source], "nouuid"); got != tc.want {
				t.Errorf("mounted with nouuid: %v", got)
			}
		})
	}
}

func TestTheOptionsOfTheCallerStayAsTheyAre(t *testing.T) {
	n := copied(t, "xfs", 64*mib)
	asked := append(make([]string, 0, 8), "noatime")
	if err := n.Stage(t.Context(), StageRequest{ID: other, Path: n.path("stage"), Options: asked}); err != nil {
		t.Fatal(err)
	}
	if got := n.options[n.record(t, other).Content.Source]; !slices.Equal(got, []string{"noatime", "nouuid"}) || asked[:2][1] != "" {
		t.Errorf("mounted with %v, asked for %v", got, asked[:2])
	}
}

func TestExt4IsMountedToStopAtAnErrorUnlessTheCallerSaysHow(t *testing.T) {
	for name, tc := range map[string]struct {
		fs          string
		asked, want []string
	}{
		"ext4":                         {"ext4", nil, []string{"errors=remount-ro"}},
		"ext4 with another option":     {"ext4", []string{"noatime"}, []string{"noatime", "errors=remount-ro"}},
		"ext4 of a caller that panics": {"ext4", []string{"errors=panic"}, []string{"errors=panic"}},
		"xfs, which always stops":      {"xfs", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.volume(t, id, tc.fs)
			if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage"), Options: tc.asked}); err != nil {
				t.Fatal(err)
			}
			if got := n.options[n.record(t, id).Content.Source]; !slices.Equal(got, tc.want) {
				t.Errorf("mounted with %v, want %v", got, tc.want)
			}
		})
	}
}

func TestACopyIsNotFormattedAndGrowsToItsVolume(t *testing.T) {
	n := copied(t, "ext4", 128*mib)
	n.stage(t, other)
	if n.disks.Formats(other) != 0 {
		t.Error("the data of the copy was lost to a new filesystem")
	}
	// Mounts in memory do not know how large the filesystem of the source was.
	if !n.grown[n.record(t, other).Content.Source] {
		t.Error("the filesystem is left as large as that of its source")
	}
}

func TestAnUnfinishedCopyCannotBeUsedAndSaysSo(t *testing.T) {
	n := copied(t, "ext4", 64*mib)
	n.copying[other] = true
	err := n.Stage(t.Context(), StageRequest{ID: other, Path: n.path("stage-" + other)})
	if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "still being copied from "+id) {
		t.Errorf("stage: %v; want %v and what it is copied from", err, provision.ErrUnavailable)
	}
	if err := n.Publish(t.Context(), n.publication(other, "pod1")); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("publish: %v; want %v", err, provision.ErrUnavailable)
	}
	n.copying[other] = false
	n.stage(t, other)
}
