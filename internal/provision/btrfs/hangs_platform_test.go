//go:build platform

package btrfs_test

import (
	"context"
	"sync"
	"testing"

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
