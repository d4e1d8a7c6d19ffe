//go:build platform

package btrfs_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/run"
)

// gate holds up those who open one filesystem.
type gate struct {
	mu   sync.Mutex
	fsid string
	shut chan struct{}
}

func (g *gate) open(fsid string, changes bool) (btrfs.Filesystem, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if fsid == g.fsid && shut != nil {
		<-shut
	}
	return kernel.Open(fsid, changes)
}

func (g *gate) hang() (resume func()) {
	shut := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.shut = nil
		close(shut)
	})
}

func TestAFilesystemThatHangsHoldsUpNoOther(t *testing.T) {
	conformance.RunHangs(t, func(t *testing.T) conformance.Two {
		// A node counts for the quotas alone: the suite starts its own provisioners.
		hangs := &node{Filesystem: btrfstest.New(t, "hangs", btrfstest.Size), t: t}
		works := &node{Filesystem: btrfstest.New(t, "works", btrfstest.Size), t: t}
		hangs.count()
		works.count()
		g := &gate{fsid: hangs.FSID}
		return conformance.Two{
			Hangs: hangs.Ref, Works: works.Ref, Filesystem: provision.Subvolume,
			Start: func() (provision.Provisioner, func(context.Context) error) {
				p, err := btrfs.New(btrfs.Config{Runner: run.Exec{}, Open: g.open})
				if err != nil {
					t.Fatal(err)
				}
				p.Want(hangs.Ref)
				p.Want(works.Ref)
				return p, p.Run
			},
			Hang: func(m conformance.Moment) func() {
				if m == conformance.AtOpen {
					return func() {} // a subvolume has no device
				}
				return g.hang()
			},
			Touch: func() { hangs.Put("theirs", 64*mebibyte) },
			Take:  func() { works.Put("theirs", 64*mebibyte) },
		}
	})
}

// late is a filesystem whose answer to a reading is there, and comes only when the channel is closed.
type late struct {
	btrfs.Filesystem
	comes chan struct{}
	begun func()
}

func (l late) Close() {
	l.begun()
	<-l.comes
	l.Filesystem.Close()
}

func TestAnAnswerThatComesAfterItsReaderHasGoneIsOlderThanOwnChanges(t *testing.T) {
	n := &node{Filesystem: btrfstest.New(t, "late", btrfstest.Size), t: t}
	n.count()
	comes, begun := make(chan struct{}), make(chan struct{})
	var hangs atomic.Bool
	n.c = btrfs.Config{Runner: run.Exec{}, RefreshInterval: time.Hour, Open: func(fsid string, changes bool) (btrfs.Filesystem, error) {
		f, err := kernel.Open(fsid, changes)
		if err == nil && !changes && hangs.CompareAndSwap(true, false) {
			return late{f, comes, sync.OnceFunc(func() { close(begun) })}, nil
		}
		return f, err
	}}
	n.start()
	p := n.p
	if err := n.create("pvc-1", 64, provision.Source{}); err != nil {
		t.Fatal(err)
	}
	n.pool() // and has nothing left to read
	hangs.Store(true)
	p.Touch(n.FSID)
	ctx, gone := context.WithCancel(t.Context())
	read := make(chan struct{})
	go func() { defer close(read); _, _ = p.Report(ctx) }()
	<-begun
	gone()
	<-read
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	close(comes)
	p.Wait()
	if left := n.await("the answer", func(p provision.Pool) bool { return p.Problem == "" }); len(left.Volumes) > 0 {
		t.Errorf("what was deleted is reported: %+v", left.Volumes)
	}
}
