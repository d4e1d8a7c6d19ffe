//go:build platform

package btrfs_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/poold"
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

// remote is a poold whose volumes can have copies, as the suite wants it.
type remote struct {
	*poold.Client
	copies provision.Replicator
}

func (r remote) Replicator() provision.Replicator { return r.copies }

// behindASocket is a node whose pools are served by poold, as a process of its own would.
func behindASocket(t *testing.T, label string) conformance.ReplicaNode {
	n := replicaNode(t, label)
	n.Every *= 9 // the effects are tried without a socket, too
	dir, start, stop, served := t.TempDir(), n.Start, func() {}, 0
	var client *poold.Client
	idle := n.Idle
	n.Idle = func() { // the Mux takes the signals that the node's own Idle waits for
		for {
			pools, err := client.Report(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(pools) == 1 && len(pools[0].Wiping) == 0 {
				break
			}
			select {
			case <-client.Changed():
			case <-t.Context().Done():
				t.Fatalf("the pool does not come to rest: %+v", pools)
			}
		}
		idle()
	}
	n.Start = func() provision.Provisioner {
		stop()
		all := provision.NewMux(provision.Member{Types: []string{provision.Btrfs}, Provisioner: start()})
		served++
		socket := filepath.Join(dir, fmt.Sprint(served))
		stopWatching := conformance.Watching(t, all.Run, func(ctx context.Context) error {
			return poold.Run(ctx, poold.Config{Socket: socket, Node: poold.NewLocal(all, nil)})
		})
		var err error
		if client, err = poold.Dial(t.Context(), socket); err != nil {
			t.Fatal(err)
		}
		<-client.Changed()
		copies, err := client.ReplicatorOf(t.Context(), provision.Btrfs)
		if err != nil {
			t.Fatal(err)
		}
		stop = func() { client.Close(); stopWatching() }
		return remote{client, copies}
	}
	return n
}

func TestConformanceOfReplicationOnBtrfsAcrossTheSocket(t *testing.T) {
	conformance.RunReplication(t, func(t *testing.T) [2]conformance.ReplicaNode {
		return [2]conformance.ReplicaNode{behindASocket(t, "here"), behindASocket(t, "there")}
	})
}

// TestASignalDoesNotBreakAStream takes profiles of the processor, which are signals to whichever thread works.
func TestASignalDoesNotBreakAStream(t *testing.T) {
	n := newNode(t, "data")
	v := n.mustCreate("pvc-1", 256, provision.Source{})
	r := n.p.Replicator()
	one := lineage.Epoch{Number: 1, ID: "one"}
	p := lineage.Point{Epoch: one, Seq: 1}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Mark(t.Context(), v.ID, provision.Mark{Promise: ownership.Promise{Epoch: one, Lineage: lineage.Lineage{{Epoch: one}}}, Opened: one}))
	_, err := r.Writable(t.Context(), v.ID)
	must(err)
	_, err = n.Fill(filepath.Join(n.Data(v.ID), "file"), 96<<20)
	must(err)
	must(r.Snapshot(t.Context(), provision.PointRequest{Volume: v.ID, Point: p}))
	sum := func() [32]byte {
		out, in, err := os.Pipe()
		must(err)
		defer out.Close()
		sent := make(chan error, 1)
		go func() {
			defer in.Close()
			sent <- r.Send(t.Context(), provision.SendRequest{Volume: v.ID, Target: p}, in)
		}()
		h := sha256.New()
		_, err = io.Copy(h, out)
		must(errors.Join(err, <-sent))
		return [32]byte(h.Sum(nil))
	}
	want := sum()
	runtime.SetCPUProfileRate(1000)
	must(pprof.StartCPUProfile(io.Discard))
	defer pprof.StopCPUProfile()
	for range 5 {
		if sum() != want {
			t.Fatal("the stream is another one")
		}
	}
}
