//go:build platform

package btrfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// deep makes directories in one whose path is longer than the kernel takes at once, and calls do
// with a shorter path of the last.
func deep(t *testing.T, top string, do func(path string)) {
	t.Helper()
	dir, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 250)
	for range 20 {
		if err := dir.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		within, err := dir.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		dir.Close()
		dir = within
	}
	defer dir.Close()
	last, err := dir.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close() // the kernel frees nothing that is open
	do(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), last.Fd()))
}

func TestNothingThatATenantMakesKeepsItsVolume(t *testing.T) {
	subvolume := func(t *testing.T, path string) string {
		btrfstest.Run(t, "btrfs", "subvolume", "create", path)
		return path
	}
	readOnly := func(t *testing.T, path string) {
		btrfstest.Run(t, "btrfs", "property", "set", "-ts", path, "ro", "true")
	}
	for name, do := range map[string]func(t *testing.T, data string){
		"a read-only subvolume that holds another": func(t *testing.T, data string) {
			subvolume(t, subvolume(t, data+"/outer")+"/inner")
			btrfstest.Run(t, "chattr", "+i", data+"/outer")
			readOnly(t, data+"/outer")
		},
		"a read-only volume that holds another": func(t *testing.T, data string) {
			subvolume(t, data+"/inner")
			readOnly(t, data)
		},
		"a limit of a subvolume that holds another": func(t *testing.T, data string) {
			subvolume(t, subvolume(t, data+"/outer")+"/inner")
			btrfstest.Run(t, "btrfs", "qgroup", "limit", "1", data+"/outer")
		},
		"a limit of what only a subvolume has that holds another": func(t *testing.T, data string) {
			subvolume(t, subvolume(t, data+"/outer")+"/inner")
			btrfstest.Run(t, "btrfs", "qgroup", "limit", "-e", "1", data+"/outer")
		},
		"a subvolume that counts for a volume that is full": func(t *testing.T, data string) {
			btrfstest.Run(t, "btrfs", "qgroup", "create", "1/1000", data)
			btrfstest.Run(t, "btrfs", "subvolume", "create", "-i", "1/1000", data+"/outer")
			subvolume(t, data+"/outer/inner")
			btrfstest.Run(t, "btrfs", "qgroup", "limit", "1", "1/1000", data)
		},
		"a subvolume at a long path": func(t *testing.T, data string) {
			deep(t, data, func(dir string) { subvolume(t, dir+"/own") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "data")
			n.mustCreate("pvc-1", 64, provision.Source{})
			do(t, filepath.Clean(n.Data("pvc-1")))
			if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
				t.Fatal(err)
			}
			n.await("all to be removed", func(p provision.Pool) bool {
				if len(p.Wiping) > 0 && p.Wiping[0].Problem != "" {
					t.Fatal(p.Wiping[0].Problem)
				}
				return len(p.Wiping) == 0 && n.left("trash") == ""
			})
		})
	}
}

// counting notes how many subvolumes were removed since a filesystem was opened.
type counting struct {
	*kernel.Filesystem
	removed int64
	most    *atomic.Int64
}

func (c *counting) Destroy(r kernel.Root) error {
	c.removed++
	c.most.Store(max(c.most.Load(), c.removed))
	return c.Filesystem.Destroy(r)
}

func TestAVolumeOfManySubvolumesIsRemovedInTurns(t *testing.T) {
	n := newNode(t, "data")
	n.stop()
	var most atomic.Int64
	n.c.Open = func(fsid string, changes bool) (btrfs.Filesystem, error) {
		f, err := kernel.Open(fsid, changes)
		return &counting{f, 0, &most}, err
	}
	n.start()
	n.mustCreate("pvc-1", 64, provision.Source{})
	path := n.Data("pvc-1")
	for i := range 300 {
		if i < 10 {
			path += "/in"
			btrfstest.Run(t, "btrfs", "subvolume", "create", path)
		} else {
			btrfstest.Run(t, "btrfs", "subvolume", "create", fmt.Sprint(path, i))
		}
	}
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	n.await("all to be removed", func(p provision.Pool) bool { return len(p.Wiping) == 0 && n.left("trash") == "" })
	if most.Load() > 256 || most.Load() < 44 {
		t.Errorf("%d subvolumes were removed at once", most.Load())
	}
}
