package memorytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
)

// Replicating is a provisioner whose Replicator has the clock of a test.
type Replicating struct {
	*memory.Provisioner
	Copies provision.Replicator
}

// Replicator implements provision.Replicating.
func (r Replicating) Replicator() provision.Replicator { return r.Copies }

// shared lets several goroutines use a Crash.
type shared struct {
	mu sync.Mutex
	memory.Crash
}

func (s *shared) Before(ctx context.Context, op memory.Operation, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Crash.Before(ctx, op, id)
}

func (s *shared) After(ctx context.Context, op memory.Operation, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Crash.After(ctx, op, id)
}

// ReplicaNode returns a node with an empty pool. serve ends the process that it began last, and begins one that
// offers a provisioner.
func ReplicaNode(t *testing.T, serve func(Replicating) provision.Provisioner) conformance.ReplicaNode {
	pool := provision.PoolRef{Type: provision.LVM, Name: "vg"}
	disks, now, crash := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 200 * unit}), time.Unix(1e9, 0), &shared{}
	var last *memory.Provisioner
	return conformance.ReplicaNode{
		Pool: pool,
		Start: func() provision.Provisioner {
			if last != nil {
				last.Wait()
			}
			if crash.Dead { // a process that ended crashes no more
				crash.At, crash.Dead = 0, false
			}
			last = memory.New(disks, crash)
			return serve(Replicating{last, memory.NewReplicator(last, func() time.Time { return now })})
		},
		Crash: func(at int) func() bool {
			crash.Crash = memory.Crash{At: at}
			return func() bool { return crash.Seen >= at }
		},
		Write: func(v provision.Volume, text string) { disks.Write(v.ID, text) },
		Read: func(v provision.Volume, bytes int) string {
			content := append([]byte(disks.Read(v.ID)), make([]byte, bytes)...)
			return string(content[:bytes])
		},
		Pass: func(d time.Duration) { now = now.Add(d) },
		Now:  func() time.Time { return now },
		Idle: func() {
			if left := disks.Places(); left != 0 {
				t.Errorf("%d places are left", left)
			}
		},
	}
}
