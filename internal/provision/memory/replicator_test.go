package memory_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
)

func TestConformanceOfReplication(t *testing.T) {
	conformance.RunReplication(t, func(t *testing.T) [2]conformance.ReplicaNode {
		return [2]conformance.ReplicaNode{replicaNode(t), replicaNode(t)}
	})
}

// replicating is a provisioner whose Replicator has the clock of a test.
type replicating struct {
	*memory.Provisioner
	r *memory.Replicator
}

func (r replicating) Replicator() provision.Replicator { return r.r }

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

func replicaNode(t *testing.T) conformance.ReplicaNode {
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
			return replicating{last, memory.NewReplicator(last, func() time.Time { return now })}
		},
		Crash: func(at int) func() bool {
			crash.Crash = memory.Crash{At: at}
			return func() bool { return crash.Seen >= at }
		},
		Write: func(v provision.Volume, text string) { disks.Write(v.ID, text) },
		Read: func(v provision.Volume, bytes int) string {
			return string(extended(disks.Read(v.ID), int64(bytes))[:bytes])
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
