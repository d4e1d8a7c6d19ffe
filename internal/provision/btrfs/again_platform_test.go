//go:build platform

package btrfs_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// reads remembers which directories were read.
type reads struct {
	mu   sync.Mutex
	dirs []string
}

func (r *reads) note(dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirs = append(r.dirs, dir)
}

// take returns how often something in the directory of each volume was read.
func (r *reads) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := map[string]int{}
	for _, dir := range r.dirs {
		if id, is := strings.CutPrefix(dir, ".berth/volumes/"); is {
			id, _, _ = strings.Cut(id, "/")
			of[id]++
		}
	}
	r.dirs = nil
	return of
}

type noted struct {
	btrfs.Filesystem
	by *reads
}

func (n noted) Read(dir string) ([]byte, uint64, error) {
	n.by.note(dir)
	return n.Filesystem.Read(dir)
}

func (n noted) Copy(dir string) ([]byte, error) {
	n.by.note(dir)
	return n.Filesystem.Copy(dir)
}

// A node may have a thousand copies, and each keeps a point every minute.
func TestAChangeOfACopyReadsTheRecordsOfNoOther(t *testing.T) {
	n := newNode(t, "data")
	n.stop()
	by := &reads{}
	n.c.RefreshInterval = time.Hour
	n.c.Open = func(fsid string, changes bool) (btrfs.Filesystem, error) {
		f, err := kernel.Open(fsid, changes)
		return noted{f, by}, err
	}
	p, err := btrfs.New(n.c)
	if err != nil {
		t.Fatal(err)
	}
	p.Want(n.Ref)
	t.Cleanup(p.Wait)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	epoch := lineage.Epoch{Number: 1, ID: "one"}
	mark := provision.Mark{Promise: ownership.Promise{Epoch: epoch, Primary: "here", Lineage: lineage.Lineage{{Epoch: epoch}}}, Opened: epoch}
	r := p.Replicator()
	point := func(seq uint64) lineage.Point { return lineage.Point{Epoch: epoch, Seq: seq} }
	for _, id := range []string{"pvc-1", "pvc-2"} {
		_, err := p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: n.Ref, Size: 16 << 20, Tree: provision.Subvolume})
		must(err)
		must(r.Mark(t.Context(), id, mark))
		_, err = r.Writable(t.Context(), id)
		must(err)
		must(r.Snapshot(t.Context(), provision.PointRequest{Volume: id, Point: point(1)}))
	}
	_, err = p.Report(t.Context())
	must(err)

	p.Wait() // until the limits follow what the points keep
	by.take()
	must(r.Snapshot(t.Context(), provision.PointRequest{Volume: "pvc-1", Point: point(2)}))
	p.Wait()
	if got := by.take(); got["pvc-2"] != 0 || got["pvc-1"] == 0 {
		t.Errorf("read was %v", got)
	}
	for id, want := range map[string]int{"pvc-1": 2, "pvc-2": 1} {
		s, err := r.State(t.Context(), id)
		if err != nil || len(s.Points) != want || !s.Writable {
			t.Errorf("%s is %+v, %v", id, s, err)
		}
	}
}
