package staging

import (
	"testing"

	"github.com/moby/sys/mountinfo"
)

func TestWhichFilesystemsHaveShutThemselvesDown(t *testing.T) {
	for name, test := range map[string]struct {
		filesystem, of, super string
		fails                 bool
		want                  bool
	}{
		"ext4 that is well":                         {"ext4", "rw,relatime", "rw,errors=remount-ro", false, false},
		"ext4 that is read-only under a mount":      {"ext4", "rw,relatime", "ro", false, true},
		"ext4 with the words of newer kernels":      {"ext4", "rw,relatime", "rw,emergency_ro", false, true},
		"ext4 whose journal was ended":              {"ext4", "rw,relatime", "rw,shutdown", false, true},
		"ext4 that was mounted read-only":           {"ext4", "ro,relatime", "ro", false, false},
		"a part of it that a pod may not write":     {"ext4", "ro,relatime", "rw", false, false},
		"an option that only begins like the words": {"ext4", "rw", "rw,rootcontext=shutdown_t", false, false},
		"XFS that is well":                          {"xfs", "rw,relatime", "rw,attr2", false, false},
		"XFS that fails all questions":              {"xfs", "rw,relatime", "rw,attr2", true, true},
		"another filesystem":                        {"nfs4", "rw", "ro", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			line := &mountinfo.Info{FSType: test.filesystem, Options: test.of, VFSOptions: test.super, Mountpoint: "/a"}
			if got := hasShutDown(line, func(string) bool { return test.fails }); got != test.want {
				t.Errorf("it has: %v", got)
			}
		})
	}
}

func TestFilesystemsOutsideOfTheDirectoryAreNotLookedAt(t *testing.T) {
	if paths, err := KernelShutDowns(t.TempDir()); err != nil || len(paths) > 0 {
		t.Errorf("%v, %v", paths, err)
	}
}
