package lvm

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/run"
)

var errBehind = errors.New("a process of LVM waits for a disk that does not answer, and cannot be ended: look for processes in state D, and at the kernel's log")

// ask runs a query, for queryTimeout at most. Every command of LVM reads every disk, and the
// kernel does not let go of a process that waits for a disk which does not answer. ask leaves
// such a process behind, and starts no other while there is one.
func (p *reader) ask(ctx context.Context, c run.Command) ([]byte, error) {
	if p.behind.Load() > 0 {
		return nil, fmt.Errorf("asking LVM for a report: %w", errBehind)
	}
	out, err := engine.Ask(ctx, p.config.Runner, c, queryTimeout, func() (ended func()) {
		p.behind.Add(1)
		return func() { p.behind.Add(-1) }
	})
	if err != nil {
		return nil, fmt.Errorf("asking LVM for a report: %w", err)
	}
	return out, nil
}
