package staging

import (
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// answers are what a filesystem says, and how often it was asked to change something.
type answers struct {
	stated, refuses error
	count           string
	changes         int
}

func (a *answers) stat(string) error    { return a.stated }
func (a *answers) errors(string) string { return a.count }
func (a *answers) writes(string) error {
	a.changes++
	return a.refuses
}

func TestWhichFilesystemsHaveShutThemselvesDown(t *testing.T) {
	for name, test := range map[string]struct {
		filesystem, of, super string
		says                  answers
		want                  bool
	}{
		"ext4 that is well":                         {"ext4", "rw,relatime", "rw,errors=remount-ro", answers{refuses: unix.EIO}, false},
		"ext4 that is read-only under a mount":      {"ext4", "rw,relatime", "ro", answers{}, true},
		"ext4 with the words of newer kernels":      {"ext4", "rw,relatime", "rw,emergency_ro", answers{}, true},
		"ext4 whose journal was ended":              {"ext4", "rw,relatime", "rw,shutdown", answers{}, true},
		"ext4 that was mounted read-only":           {"ext4", "ro,relatime", "ro", answers{}, false},
		"a part of it that a pod may not write":     {"ext4", "ro,relatime", "rw", answers{}, false},
		"an option that only begins like the words": {"ext4", "rw", "rw,rootcontext=shutdown_t", answers{}, false},
		"ext4 that refuses after an error":          {"ext4", "rw", "rw", answers{count: "1", refuses: unix.EIO}, true},
		"ext4 that is read-only and hides it":       {"ext4", "rw", "rw", answers{count: "1", refuses: unix.EROFS}, true},
		"ext4 that goes on after an error":          {"ext4", "rw", "rw", answers{count: "1", refuses: unix.ENODATA}, false},
		"ext4 that cannot be asked":                 {"ext4", "rw", "rw", answers{count: "1", refuses: unix.ENOENT}, false},
		"XFS that is well":                          {"xfs", "rw,relatime", "rw,attr2", answers{}, false},
		"XFS that fails all questions":              {"xfs", "rw,relatime", "rw,attr2", answers{stated: unix.EIO}, true},
		"XFS that is gone":                          {"xfs", "rw,relatime", "rw,attr2", answers{stated: unix.ENOENT}, false},
	} {
		t.Run(name, func(t *testing.T) {
			line := &mountinfo.Info{FSType: test.filesystem, Options: test.of, VFSOptions: test.super, Mountpoint: "/a"}
			var s ShutDowns
			if got := s.hasShutDown(line, &test.says); got != test.want {
				t.Errorf("it has: %v", got)
			}
		})
	}
}

// Each question has the disk write, unless the filesystem has shut itself down.
func TestAFilesystemIsAskedOnceAfterEachErrorUntilItRefuses(t *testing.T) {
	line, a := &mountinfo.Info{FSType: "ext4", Options: "rw", VFSOptions: "rw", Mountpoint: "/a", Major: 8, Minor: 16}, &answers{}
	var s ShutDowns
	for i, step := range []struct {
		count   string
		refuses error
		want    bool
		changes int
	}{
		{"", nil, false, 0},
		{"3", nil, false, 1},
		{"3", nil, false, 0},
		{"4", unix.EIO, true, 1},
		{"4", unix.EIO, true, 1},
		{"4", nil, false, 1}, // it is mounted anew
		{"4", nil, false, 0},
		{"", nil, false, 0}, // it was checked
		{"4", unix.EIO, true, 1},
	} {
		a.count, a.refuses, a.changes = step.count, step.refuses, 0
		if got := s.hasShutDown(line, a); got != step.want || a.changes != step.changes {
			t.Errorf("step %d: it has: %v, asked %d times", i, got, a.changes)
		}
	}
}

func TestFilesystemsOutsideOfTheDirectoryAreNotLookedAt(t *testing.T) {
	var s ShutDowns
	if paths, err := s.Below(t.TempDir()); err != nil || len(paths) > 0 {
		t.Errorf("%v, %v", paths, err)
	}
}
