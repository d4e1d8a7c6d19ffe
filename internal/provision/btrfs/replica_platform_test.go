//go:build platform

package btrfs_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/conformance"
)

func (f fragile) RecordCopy(dir string, record []byte) error {
	return f.c.effect(func() error { return f.Filesystem.RecordCopy(dir, record) })
}

func (f fragile) Bound(id uint64, size int64) error {
	return f.c.effect(func() error { return f.Filesystem.Bound(id, size) })
}

func (f fragile) Seal(dir string, is kernel.Subvolume) error {
	return f.c.effect(func() error { return f.Filesystem.Seal(dir, is) })
}

func (f fragile) Apply(ctx context.Context, dir string, is kernel.Subvolume, increment bool, pipe *os.File) error {
	return f.c.effect(func() error { return f.Filesystem.Apply(ctx, dir, is, increment, pipe) })
}

// every says at which effects a process ends in the tests of copies. All of them take an hour.
var every = flag.Int("every", 7, "the tests of copies end processes at each such effect")

// replicaNode is a node whose volumes can be copies.
func replicaNode(t *testing.T, label string) conformance.ReplicaNode {
	n := newNode(t, label)
	passed := time.Duration(0)
	n.c.Mounted = func() (map[string]string, error) { // the other node's is on the same machine
		return map[string]string{n.FSID: label}, nil
	}
	n.c.Now = func() time.Time { return time.Now().Add(passed) }
	sound, c := n.c, &crash{}
	return conformance.ReplicaNode{
		Pool: n.Ref, Filesystem: provision.Subvolume, Every: *every,
		Start: func() provision.Provisioner {
			n.stop()
			n.c.Open = c.open
			if c.dead || c.at == 0 {
				n.c.Open = sound.Open
			}
			n.start()
			return n.p
		},
		Crash: func(at int) func() bool {
			this := &crash{at: (at + 1) / 2, after: at%2 == 0}
			c = this
			return func() bool { return this.dead }
		},
		Write: func(v provision.Volume, text string) { n.writeAt(v, text, 0) },
		Read:  func(v provision.Volume, bytes int) string { return n.readAt(v, bytes, 0) },
		Pass:  func(d time.Duration) { passed += d },
		Now:   func() time.Time { return n.c.Now() },
		Idle: func() {
			n.await("an empty pool", func(p provision.Pool) bool {
				return len(p.Wiping) == 0 && p.Free == p.Total && n.left("making", "trash", "volumes") == ""
			})
		},
	}
}

func TestConformanceOfReplicationOnBtrfs(t *testing.T) {
	conformance.RunReplication(t, func(t *testing.T) [2]conformance.ReplicaNode {
		return [2]conformance.ReplicaNode{replicaNode(t, "here"), replicaNode(t, "there")}
	})
}
