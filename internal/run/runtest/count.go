package runtest

import (
	"context"
	"maps"
	"sync"

	"berth.dev/berth/internal/run"
)

// Counter is a run.Runner that counts the processes another one starts, by
// operation.
type Counter struct {
	runner run.Runner
	mu     sync.Mutex
	counts map[string]int
}

var _ run.Runner = (*Counter)(nil)

// Count wraps a runner.
func Count(r run.Runner) *Counter { return &Counter{runner: r, counts: map[string]int{}} }

// Query implements run.Runner.
func (c *Counter) Query(ctx context.Context, cmd run.Command) ([]byte, error) {
	c.add(cmd)
	return c.runner.Query(ctx, cmd)
}

// Change implements run.Runner.
func (c *Counter) Change(cmd run.Command) ([]byte, error) {
	c.add(cmd)
	return c.runner.Change(cmd)
}

// Take returns the counts since the last Take and starts again from zero.
func (c *Counter) Take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	c.counts = map[string]int{}
	return counts
}

// Counts returns a copy of the counts so far.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func (c *Counter) add(cmd run.Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[cmd.Operation]++
}
