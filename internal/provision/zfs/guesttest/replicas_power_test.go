//go:build platform

package guesttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// The power may fail at every moment at which a node receives a copy, and makes it writable. What was answered is there
// afterwards, no point is there without its promise, and the steps can be done again.
func TestThePowerMayFailAtEveryMomentOfACopyOfAZvolOnRealZFS(t *testing.T) { powerOfCopies(t, "") }

func TestThePowerMayFailAtEveryMomentOfACopyOfADatasetOnRealZFS(t *testing.T) {
	powerOfCopies(t, provision.Dataset)
}

// The steps of the life of a copy.
const (
	copyMade = iota
	fullCame
	incrementCame
	copyOpened
	copyLived
)

const copyID = "pvc-copy"

// Both have the same length: one overwrites the other.
const first, second = "first ", "second"

func powerOfCopies(t *testing.T, tree string) {
	zfstest.Run(t, "modprobe", "zfs")
	full, increment := streams(t, tree)
	life := [copyLived]func(n *powered) error{
		copyMade: func(n *powered) error {
			_, err := n.Create(n.Context(), provision.CreateRequest{ID: copyID, Pool: ref, Size: 4 * mib, Tree: tree})
			return err
		},
		fullCame:      func(n *powered) error { return n.receives(full) },
		incrementCame: func(n *powered) error { return n.receives(increment) },
		copyOpened:    func(n *powered) error { return opens(n.T, n.Replicator(), 2, at(1, 2)) },
	}
	backings := blockdevtest.Disks(t, 2)
	d := faultydisk.New(t, diskName, backings[0], powerDisk)
	entries := d.Record(backings[1], func() {
		n := boot(t, "create", "-f", "-o", "cachefile=none", "-O", "mountpoint=none", zpool, diskPath)
		n.start()
		for step, do := range life {
			zfstest.Run(t, "udevadm", "settle")
			d.Reach(step)
			n.must(do(n))
		}
		d.Reach(copyLived)
		n.end()
	})
	all := moments(entries, powerDisk)
	some := chosen(all, []int{fullCame, incrementCame}, conformance.Rounds(t))
	d.FailAt(some, entries, func(t *testing.T, step int) {
		n := boot(t, "import", "-f", "-N", "-o", "cachefile=none", "-d", diskPath, zpool)
		n.start()
		n.checkCopy(step)
		for s := step; s < copyLived; s++ {
			n.must(life[s](n))
			n.checkCopy(s + 1)
		}
		v, err := n.Get(n.Context(), copyID)
		n.must(err)
		if got := (replicaFiles{n.T}).read(v, len(second)); got != second {
			n.Errorf("the copy holds %q", got)
		}
		n.end()
	})
	t.Logf("the power failed at %d of %d moments", len(some), len(all))
}

// checkCopy fails unless the copy has what the steps before one brought.
func (n *powered) checkCopy(step int) {
	n.Helper()
	s, err := n.Replicator().State(n.Context(), copyID)
	if step > copyMade {
		n.must(err)
	}
	for came, p := range map[int]lineage.Point{fullCame: at(1, 1), incrementCame: at(1, 2)} {
		if step > came && !s.Has(p) && s.Tip() != at(1, 2) {
			n.Errorf("step %d: point %v is lost: %+v", step, p, s)
		}
	}
	if len(s.Points) > 0 && s.Promise.Epoch.IsZero() {
		n.Errorf("step %d: a point is there without its promise: %+v", step, s)
	}
	if step > copyOpened && s.Opened != epoch(2) {
		n.Errorf("step %d: the copy is not open: %+v", step, s)
	}
}

func epoch(number uint64) lineage.Epoch {
	return lineage.Epoch{Number: number, ID: fmt.Sprint("e", number)}
}

func at(number, seq uint64) lineage.Point { return lineage.Point{Epoch: epoch(number), Seq: seq} }

// opens makes a copy writable in the first epoch, or in one that begins at a point of it.
func opens(t *testing.T, r provision.Replicator, number uint64, from lineage.Point) error {
	l := lineage.Lineage{{Epoch: epoch(1)}}
	if number > 1 {
		l = l.Extend(lineage.Branch{Epoch: epoch(number), From: from})
	}
	err := r.Mark(t.Context(), copyID, provision.Mark{Promise: ownership.Promise{Epoch: epoch(number), Lineage: l}, Opened: epoch(number)})
	if err == nil {
		_, err = r.Writable(t.Context(), copyID)
	}
	return err
}

// streams returns those of a volume's first point, and of what was written after it.
func streams(t *testing.T, tree string) (full, increment conformance.Stream) {
	t.Helper()
	const peer = "peer"
	file := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, powerDisk)); err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "zpool", "create", "-f", "-o", "cachefile=none", "-O", "mountpoint=none", peer, file)
	c, _, _ := zfstest.RealConfig(t)
	c.Devices = zfstest.Alone{Devices: &kernel.Devices{}, Name: peer}
	p, err := zfs.New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := conformance.Watching(t, p.Run)
	defer func() {
		stop()
		p.Wait()
		zfstest.Run(t, "udevadm", "settle")
		zfstest.Run(t, "zpool", "destroy", "-f", peer)
	}()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pool := provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + peer}
	_, err = p.Create(t.Context(), provision.CreateRequest{ID: copyID, Pool: pool, Size: 4 * mib, Tree: tree})
	must(err)
	r := p.Replicator()
	must(opens(t, r, 1, lineage.Point{}))
	for seq, text := range []string{first, second} {
		v, err := p.Get(t.Context(), copyID)
		must(err)
		replicaFiles{t}.write(v, text)
		must(r.Snapshot(t.Context(), provision.PointRequest{Volume: copyID, Point: at(1, uint64(seq+1))})) //nolint:gosec // 1 and 2
	}
	full, err = conformance.Send(t.Context(), r, provision.SendRequest{Volume: copyID, Target: at(1, 1)})
	must(err)
	increment, err = conformance.Send(t.Context(), r, provision.SendRequest{Volume: copyID, Base: at(1, 1), Target: at(1, 2)})
	must(err)
	return full, increment
}

// receives brings a stream, unless it came before the power failed. What came of it in part is removed first.
func (n *powered) receives(s conformance.Stream) error {
	r := n.Replicator()
	state, err := r.State(n.Context(), copyID)
	switch {
	case err != nil || state.Has(s.Target):
		return err
	case state.Receiving != nil:
		if err := r.Abort(n.Context(), copyID); err != nil {
			return err
		}
	}
	return conformance.Receive(n.Context(), r, s)
}
