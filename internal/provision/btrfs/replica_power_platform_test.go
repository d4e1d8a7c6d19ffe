//go:build platform

package btrfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/conformance"
)

// copyNode is a node that sees only its own filesystem of those on this machine.
func copyNode(t *testing.T, label string) *node {
	n := newNode(t, label)
	n.stop()
	n.c.Mounted = func() (map[string]string, error) { return map[string]string{n.FSID: label}, nil }
	n.start()
	return n
}

func epoch(number uint64) lineage.Epoch {
	return lineage.Epoch{Number: number, ID: fmt.Sprint("e", number)}
}

func pointOf(number, seq uint64) lineage.Point { return lineage.Point{Epoch: epoch(number), Seq: seq} }

// opened makes the volume's copy writable in the first epoch or, if a point is given, in one that begins
// there.
func (n *node) opened(number uint64, from lineage.Point) error {
	l := lineage.Lineage{{Epoch: epoch(1)}}
	if number > 1 {
		l = l.Extend(lineage.Branch{Epoch: epoch(number), From: from})
	}
	r := n.p.Replicator()
	err := r.Mark(n.t.Context(), "pvc-1", provision.Mark{Promise: ownership.Promise{Epoch: epoch(number), Lineage: l}, Opened: epoch(number)})
	if err == nil {
		_, err = r.Writable(n.t.Context(), "pvc-1")
	}
	return err
}

func (n *node) take(p lineage.Point) {
	n.t.Helper()
	if err := n.p.Replicator().Snapshot(n.t.Context(), provision.PointRequest{Volume: "pvc-1", Point: p}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) copyState() provision.Replica {
	n.t.Helper()
	s, err := n.p.Replicator().State(n.t.Context(), "pvc-1")
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

func (n *node) sends(base, target lineage.Point) conformance.Stream {
	n.t.Helper()
	s, err := conformance.Send(n.t.Context(), n.p.Replicator(), provision.SendRequest{Volume: "pvc-1", Base: base, Target: target})
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

func (n *node) receives(s conformance.Stream) error {
	return conformance.Receive(n.t.Context(), n.p.Replicator(), s)
}

// source is a node whose copy has two points, with the streams of both.
func source(t *testing.T) (n *node, full, increment conformance.Stream) {
	t.Helper()
	n = copyNode(t, "here")
	n.mustCreate("pvc-1", 64, provision.Source{})
	if err := n.opened(1, lineage.Point{}); err != nil {
		t.Fatal(err)
	}
	n.writeAt(n.mustGet("pvc-1"), "first ", 0)
	n.take(pointOf(1, 1))
	n.writeAt(n.mustGet("pvc-1"), "second", 0)
	n.take(pointOf(1, 2))
	return n, n.sends(lineage.Point{}, pointOf(1, 1)), n.sends(pointOf(1, 1), pointOf(1, 2))
}

// A loss of power leaves on the disk what was written until then. The test takes a copy of the disk of
// the receiver after each effect, and looks at the copies.
func TestPowerMayFailAfterAnyEffectOfAStreamOnBtrfs(t *testing.T) {
	_, full, increment := source(t)
	n := copyNode(t, "there")
	n.stop()
	dir, image := t.TempDir(), btrfstest.Run(t, "losetup", "--noheadings", "--output", "BACK-FILE", n.Disk)
	var done int     // steps that returned
	var copies []int // for each copy, how many had returned
	c := &crash{at: -1, done: func(int) {
		copyAtRest(t, image, filepath.Join(dir, fmt.Sprint(len(copies))))
		copies = append(copies, done)
	}}
	sound := n.c
	n.c.Open = c.open
	n.start()
	for i, step := range []func() error{
		func() error { return n.create("pvc-1", 64, provision.Source{}) },
		func() error { return n.receives(full) },
		func() error { return n.receives(increment) },
		func() error { return n.opened(2, pointOf(1, 2)) },
	} {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		done++
	}
	n.stop()
	n.Unmount()
	n.c = sound
	for i, done := range copies {
		node := btrfstest.Run(t, "losetup", "--find", "--show", filepath.Join(dir, fmt.Sprint(i)))
		n.Disk = node
		n.Mount()
		n.start()
		if done > 0 {
			n.survived(fmt.Sprintf("copy %d, after %d steps", i, done), done)
		}
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

// survived fails unless the copy is whole: it has what was reported, its promise, and the data of its
// newest point.
func (n *node) survived(where string, steps int) {
	n.t.Helper()
	s := n.copyState()
	if len(s.Points) < min(steps, 3)-1 || len(s.Points) > 0 && s.Promise.Epoch.IsZero() {
		n.t.Errorf("%s: the copy is %+v", where, s)
	}
	if len(s.Points) == 0 {
		return
	}
	if err := n.p.Replicator().Abort(n.t.Context(), "pvc-1"); err != nil {
		n.t.Errorf("%s: %v", where, err)
	}
	if err := n.opened(3, s.Tip()); err != nil {
		n.t.Errorf("%s: %v", where, err)
		return
	}
	want := map[uint64]string{1: "first ", 2: "second"}[s.Tip().Seq]
	if got := n.readAt(n.mustGet("pvc-1"), len(want), 0); got != want {
		n.t.Errorf("%s: the copy with %v holds %q", where, s.Points, got)
	}
	n.await("what is left over to go", func(provision.Pool) bool {
		places, _ := os.ReadDir(filepath.Join(n.Top, ".berth/volumes/pvc-1/points"))
		return len(places) == len(s.Points) && n.left("making", "trash") == ""
	})
}

// A peer may send more than it says. The volume's size bounds what that takes.
func TestAStreamThatIsLargerThanItsVolumeTakesNoRoom(t *testing.T) {
	n, _, _ := source(t)
	if _, err := n.p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 128 * mebibyte}); err != nil {
		t.Fatal(err)
	}
	if err := n.fill("pvc-1", "large", 96, 96); err != nil {
		t.Fatal(err)
	}
	n.take(pointOf(1, 3))
	bomb := n.sends(lineage.Point{}, pointOf(1, 3))
	bomb.Size = 32 * mebibyte
	there := copyNode(t, "there")
	there.mustCreate("pvc-1", 32, provision.Source{})
	free := there.pool().Free
	fails(t, "receiving", there.receives(bomb), provision.ErrNoSpace)
	there.await("its room", func(p provision.Pool) bool { return p.Free == free })
	if s := there.copyState(); s.Receiving != nil || len(s.Points) > 0 {
		t.Errorf("the copy is %+v", s)
	}
}

// What tenants make, also what they share, mark and nest, comes through a stream and back again.
func TestATreeThatATenantMadeComesThroughStreamsOnBtrfs(t *testing.T) {
	n, _, _ := source(t)
	there := copyNode(t, "there")
	for _, each := range []*node{n, there} { // to look at files must not change them
		btrfstest.Run(t, "mount", "-o", "remount,noatime", each.Top)
	}
	data := n.Data("pvc-1")
	sh := func(script string) string { return btrfstest.Run(t, "sh", "-ec", "cd "+data+"\n"+script) }
	sh(`mkdir -p a/b/c; echo text >a/b/file; ln a/b/file twin; ln -s /etc/passwd link; mkfifo pipe; mknod null c 1 3
		head -c 300000 /dev/urandom >a/random; cp --reflink=always a/random a/shared; truncate -s 5G sparse
		chmod 4711 a/random; chown 1000:1001 a/b; touch -h -d @1000000000 link; setfattr -n user.x -v y twin 2>/dev/null || true`)
	n.take(pointOf(1, 3))
	there.mustCreate("pvc-1", 64, provision.Source{})
	if err := there.receives(n.sends(lineage.Point{}, pointOf(1, 3))); err != nil {
		t.Fatal(err)
	}
	sh(`mv a/b d; rm twin; rmdir d/c; mkdir d/c; head -c 4096 /dev/zero | dd of=a/random conv=notrunc bs=4096 seek=3 status=none
		truncate -s 100000 a/shared; ln -sf other link; echo more >>d/file; fallocate -p -o 0 -l 65536 a/random; chattr +i d/file; rm null`)
	n.take(pointOf(1, 4))
	if err := there.receives(n.sends(pointOf(1, 3), pointOf(1, 4))); err != nil {
		t.Fatal(err)
	}
	sum := func(n *node) string {
		return btrfstest.Run(t, "sh", "-ec", "cd "+n.Data("pvc-1")+`
			find . -printf '%p %y %m %U:%G %s %T@ %l %n\n' | grep -v '^\. ' | sort; find . -type f ! -size +1G | sort | xargs md5sum`)
	}
	if err := n.p.Replicator().Mark(t.Context(), "pvc-1", provision.Mark{Closed: epoch(1)}); err != nil {
		t.Fatal(err)
	}
	if err := there.opened(2, pointOf(1, 4)); err != nil {
		t.Fatal(err)
	}
	if here, there := sum(n), sum(there); here != there {
		t.Errorf("the trees differ:\n%s\nand\n%s", here, there)
	}
	// The way back changes a file that the tenant of the first node made immutable.
	btrfstest.Run(t, "sh", "-ec", "cd "+there.Data("pvc-1")+"\necho back >>d/file; mv d/file file; rm -r a")
	there.take(pointOf(2, 5))
	if err := n.receives(there.sends(pointOf(1, 4), pointOf(2, 5))); err != nil {
		t.Fatal(err)
	}
	if err := there.p.Replicator().Mark(t.Context(), "pvc-1", provision.Mark{Closed: epoch(2)}); err != nil {
		t.Fatal(err)
	}
	l := lineage.Lineage{{Epoch: epoch(1)}, {Epoch: epoch(2), From: pointOf(1, 4)}, {Epoch: epoch(3), From: pointOf(2, 5)}}
	if err := n.p.Replicator().Mark(t.Context(), "pvc-1", provision.Mark{Promise: ownership.Promise{Epoch: epoch(3), Lineage: l}, Opened: epoch(3)}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.p.Replicator().Writable(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	if here, there := sum(n), sum(there); here != there || !strings.Contains(here, "./file") {
		t.Errorf("the trees differ:\n%s\nand\n%s", here, there)
	}
}
