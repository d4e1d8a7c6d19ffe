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

// clock is read by a process that a test has given up on, too.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// ReplicaNode returns a node with an empty pool. serve ends the process that it began last, and begins one that
// offers a provisioner.
func ReplicaNode(t *testing.T, serve func(Replicating) provision.Provisioner) conformance.ReplicaNode {
	pool := provision.PoolRef{Type: provision.LVM, Name: "vg"}
	disks, clock, crash := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 200 * unit}), &clock{now: time.Unix(1e9, 0)}, &shared{}
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
			return serve(Replicating{last, memory.NewReplicator(last, clock.read)})
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
		Pass: clock.pass,
		Now:  clock.read,
		Idle: func() {
			if left := disks.Places(); left != 0 {
				t.Errorf("%d places are left", left)
			}
		},
	}
}
