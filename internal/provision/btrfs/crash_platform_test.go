//go:build platform

package btrfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

const mebibyte = 1 << 20

// story has each operation, in an order in which each has an effect. In the end volume pvc-3 and what
// it was made of is left.
var story = []struct {
	name string
	do   func(n *node) error
}{
	{"create", func(n *node) error { return n.create("pvc-1", 32, provision.Source{}) }},
	{"format", func(n *node) error { return n.format("pvc-1") }},
	{"write", func(n *node) error {
		return os.WriteFile(filepath.Join(n.Data("pvc-1"), "file"), []byte(strings.Repeat("kept", mebibyte)), 0o600)
	}},
	{"expand", func(n *node) error {
		_, err := n.p.Expand(n.t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 64 * mebibyte})
		return err
	}},
	{"snapshot", func(n *node) error {
		_, err := n.p.Snapshot(n.t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
		return err
	}},
	{"clone", func(n *node) error { return n.create("pvc-2", 64, provision.Source{Volume: "pvc-1"}) }},
	{"restore", func(n *node) error { return n.create("pvc-3", 64, provision.Source{Snapshot: "snap-1"}) }},
	{"delete", func(n *node) error { return n.p.Delete(n.t.Context(), "pvc-1") }},
	{"delete the snapshot", func(n *node) error { return n.p.DeleteSnapshot(n.t.Context(), "snap-1") }},
	{"delete the clone", func(n *node) error { return n.p.Delete(n.t.Context(), "pvc-2") }},
}

func (n *node) create(id string, size int64, from provision.Source) error {
	_, err := n.p.Create(n.t.Context(), provision.CreateRequest{ID: id, Pool: n.Ref, Size: size * mebibyte, Source: from, Tree: provision.Subvolume})
	return err
}

func (n *node) format(id string) error {
	_, err := n.p.Format(n.t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Subvolume})
	return err
}

// pool returns the node's pool.
func (n *node) pool() provision.Pool {
	n.t.Helper()
	pools, err := n.p.Report(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	i := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.PoolRef == n.Ref })
	if i < 0 {
		n.t.Fatalf("the report lacks the pool: %+v", pools)
	}
	return pools[i]
}

// await repeats the report until ok accepts it.
func (n *node) await(what string, ok func(p provision.Pool) bool) provision.Pool {
	n.t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		p := n.pool()
		if ok(p) {
			return p
		}
		select {
		case <-n.p.Changed():
		case <-late.C:
			n.t.Fatalf("waited for %s; still reported is %+v", what, p)
		}
	}
}

// onlyLeft fails unless the filesystem holds one volume, in full, and nothing else.
func (n *node) onlyLeft(id string) {
	n.t.Helper()
	p := n.await("the trash to be empty", func(p provision.Pool) bool { return len(p.Wiping) == 0 && n.left("making", "trash") == "" })
	if len(p.Volumes) != 1 || p.Volumes[0].ID != id || p.Volumes[0].Problem != "" || p.Volumes[0].Filesystem != provision.Subvolume || len(p.Snapshots) > 0 || p.Problem != "" {
		n.t.Errorf("left is %+v", p)
	}
	if text, err := os.ReadFile(filepath.Join(n.Data(id), "file")); err != nil || string(text) != strings.Repeat("kept", mebibyte) {
		n.t.Errorf("it holds %d bytes, %v", len(text), err)
	}
	if got := n.left("volumes", "snapshots"); got != "volumes/"+id+" " {
		n.t.Errorf("left is %q", got)
	}
	f, err := kernel.Open(n.FSID, true)
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	roots, err := f.Roots()
	if err != nil || len(roots) != 1 {
		n.t.Errorf("subvolumes %+v, %v", roots, err)
	}
	limits, err := kernel.Quotas(n.FSID)
	if err != nil || len(limits) != 1 {
		n.t.Errorf("limits %+v, %v", limits, err)
	}
	for root := range roots {
		if limits[root].Limit != 64*mebibyte {
			n.t.Errorf("the volume is limited to %d bytes", limits[root].Limit)
		}
	}
}

// left lists what is in areas.
func (n *node) left(areas ...string) (names string) {
	for _, area := range areas {
		entries, _ := os.ReadDir(filepath.Join(n.Top, ".berth", area))
		for _, e := range entries {
			names += area + "/" + e.Name() + " "
		}
	}
	return names
}

func TestAProcessMayEndAtAnyEffectOnBtrfs(t *testing.T) {
	n := newNode(t, "data")
	n.stop()
	sound := n.c
	for _, after := range []bool{false, true} {
		for at, ended := 1, true; ended; at++ {
			c := &crash{at: at, after: after}
			n.c.Open = c.open
			n.start()
			for _, s := range story {
				err := s.do(n)
				for tries := 0; err != nil && c.dead && tries < 20; tries++ {
					n.stop()
					n.c = sound
					n.start()
					if err = s.do(n); err != nil && tries < 19 { // what a crash left is removed first
						n.await("a try", func(provision.Pool) bool { return true })
						select {
						case <-n.p.Changed():
						case <-time.After(100 * time.Millisecond):
						}
					}
				}
				if err != nil {
					t.Fatalf("effect %d (after: %v): %s: %v", at, after, s.name, err)
				}
			}
			n.stop() // it may end only in the background
			ended = c.dead
			n.c = sound
			n.start()
			n.onlyLeft("pvc-3")
			if err := n.p.Delete(t.Context(), "pvc-3"); err != nil {
				t.Fatal(err)
			}
			n.await("an empty pool", func(p provision.Pool) bool { return len(p.Wiping) == 0 && p.Free == p.Total })
			n.stop()
			if t.Failed() {
				t.Fatalf("it ended at effect %d (after: %v)", at, after)
			}
			if !ended {
				t.Logf("the story has %d effects", c.seen)
			}
		}
	}
	n.start()
}

// copyAtRest copies the image of a disk at a moment at which nothing is written to it. The kernel writes
// in the background, too.
func copyAtRest(t *testing.T, image, to string) {
	t.Helper()
	written := func() time.Time {
		info, err := os.Stat(image)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	const tick = 20 * time.Millisecond // longer than the clock of a file stands still
	for before := written(); ; before = written() {
		if time.Since(before) < tick {
			continue
		}
		btrfstest.Run(t, "cp", "--sparse=always", image, to)
		if written().Equal(before) {
			return
		}
	}
}

// A loss of power leaves on the disk what was written until then. The test takes a copy of the disk
// after each effect, and looks at the copies.
func TestPowerMayFailAfterAnyEffectOnBtrfs(t *testing.T) {
	n := newNode(t, "data")
	n.stop()
	dir := t.TempDir()
	image := btrfstest.Run(t, "losetup", "--noheadings", "--output", "BACK-FILE", n.Disk)
	var done int     // operations that returned
	var copies []int // for each copy, how many had returned
	c := &crash{at: -1, done: func(int) {
		copyAtRest(t, image, filepath.Join(dir, fmt.Sprint(len(copies))))
		copies = append(copies, done)
	}}
	sound := n.c
	n.c.Open = c.open
	n.start()
	for _, s := range story {
		if err := s.do(n); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		done++
	}
	n.onlyLeft("pvc-3")
	n.stop()
	n.Unmount()
	n.c = sound
	for i, done := range copies {
		node := btrfstest.Run(t, "losetup", "--find", "--show", filepath.Join(dir, fmt.Sprint(i)))
		n.Disk = node
		n.Mount()
		n.start()
		n.await("a report", func(p provision.Pool) bool { return p.Problem == "" })
		for _, s := range story[:done] { // what was reported is there, so nothing of it is done again
			if s.name == "clone" && done < 8 || s.name == "restore" && done >= 7 || s.name == "snapshot" && done < 8 {
				if err := s.do(n); err != nil {
					t.Errorf("copy %d, after %d operations: %s: %v", i, done, s.name, err)
				}
			}
		}
		if done >= 7 {
			if text, err := os.ReadFile(filepath.Join(n.Data("pvc-3"), "file")); err != nil || len(text) != 4*mebibyte {
				t.Errorf("copy %d, after %d operations: the restored volume holds %d bytes, %v", i, done, len(text), err)
			}
		}
		n.await("the trash to be empty", func(p provision.Pool) bool { return len(p.Wiping) == 0 && n.left("making", "trash") == "" })
		n.stop()
		n.Unmount()
		btrfstest.Run(t, "losetup", "--detach", node)
		if err := os.Remove(filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	n.Disk = ""
	t.Logf("power failed %d times", len(copies))
}
