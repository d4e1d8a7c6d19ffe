package mount_test

import (
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestEveryFilesystemCanBeMountedAndIsRepairedWithATool(t *testing.T) {
	for _, filesystem := range provision.Filesystems() {
		if err := mount.CheckOptions(filesystem, nil); err != nil {
			t.Errorf("%s: %v", filesystem, err)
		}
		if mount.RepairTool(filesystem) == "" {
			t.Errorf("no tool repairs %s", filesystem)
		}
	}
}

func TestEveryTreeIsKnownToMounts(t *testing.T) {
	for _, tree := range provision.Trees() {
		r := mount.BindRequest{Content: provision.Content{Source: "?", Tree: tree}, Source: "/a", Target: "/b"}
		if err := r.Check(); err == nil || strings.Contains(err.Error(), "by itself") {
			t.Errorf("a tree of %s from a source that none has: %v", tree, err)
		}
	}
}

func TestTheMountTableShowsATreeAndPartsOfIt(t *testing.T) {
	dataset := provision.Content{Source: "tank/pvc-1", Tree: provision.Dataset}
	for name, tc := range map[string]struct {
		content provision.Content
		line    mountinfo.Info
		path    string
		ok      bool
	}{
		"a dataset":                          {dataset, mountinfo.Info{FSType: "zfs", Source: "tank/pvc-1", Root: "/"}, "/", true},
		"a directory in a dataset":           {dataset, mountinfo.Info{FSType: "zfs", Source: "tank/pvc-1", Root: "/sub"}, "/sub", true},
		"a different dataset":                {dataset, mountinfo.Info{FSType: "zfs", Source: "tank/pvc-2", Root: "/"}, "/", false},
		"a tmpfs with the name of a dataset": {dataset, mountinfo.Info{FSType: "tmpfs", Source: "tank/pvc-1", Root: "/"}, "/", false},
		"a block device has no tree":         {provision.Content{Source: "/dev/a"}, mountinfo.Info{FSType: "ext4", Source: "/dev/a", Root: "/"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			path, ok := mount.Within(tc.content, &tc.line)
			if ok != tc.ok || ok && path != tc.path {
				t.Errorf("%q, %v, want %q, %v", path, ok, tc.path, tc.ok)
			}
		})
	}
}

func TestAVolumeIsMountedFromItsSource(t *testing.T) {
	for _, c := range []provision.Content{{Source: "/dev/a"}, {Source: "tank/pvc-1", Tree: provision.Dataset}} {
		if source, options := mount.Arguments(c); source != c.Source || len(options) > 0 {
			t.Errorf("%+v from %q with %v", c, source, options)
		}
	}
}
