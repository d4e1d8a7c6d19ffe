package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"berth.dev/berth/internal/run"
)

const (
	// model is the side whose commands are the templates for other sides. Its volumes are in
	// socketSide's pool.
	model = "model"
	// warmUp is the number of a volume that is not measured, like the one after it.
	warmUp = 1_000_000
)

// which returns the number of the volume to rehearse an operation on. Of the two volumes the
// second one is never copied.
func which(operation string, n int) int {
	if operation == deletion {
		return n + 1
	}
	return n
}

// rehearse has a side carry out all operations once, on volumes that are not measured.
func (s series) rehearse(ctx context.Context, one side, n int) error {
	if err := one.do(ctx, create, n+1); err != nil {
		return fmt.Errorf("%s: %w", create, err)
	}
	for _, operation := range s.operations {
		if err := s.rest(); err != nil {
			return err
		}
		if err := one.do(ctx, operation, which(operation, n)); err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
	}
	return nil
}

// learn has Berth carry out the operations on the model's volumes. It returns the commands that
// change something, including those that Berth starts after its answer. It fails for an
// operation that starts none: there is nothing to compare that with.
func (s series) learn(ctx context.Context, b berth, r *recorder) (map[string][]run.Command, error) {
	b.name = model
	s.tidying.finish()
	r.take() // drop the commands of the rehearsal
	learnt := map[string][]run.Command{}
	err := s.rehearse(ctx, watched{b, func(operation string, n int) error {
		s.tidying.finish()
		commands := r.take()
		if len(commands) == 0 {
			return fmt.Errorf("%s of volume %d started no command that changes something, and cannot be compared", operation, n)
		}
		learnt[operation] = commands
		return nil
	}}, 0)
	if err != nil {
		return nil, fmt.Errorf("learning what Berth starts: %w", err)
	}
	return learnt, nil
}

// watched is a side that calls after when an operation has ended.
type watched struct {
	side
	after func(operation string, n int) error
}

func (w watched) do(ctx context.Context, operation string, n int) error {
	if err := w.side.do(ctx, operation, n); err != nil {
		return err
	}
	return w.after(operation, n)
}

// retarget turns a command on the model's volumes into the same command on a volume of
// another side. A selection by UUID goes: it would leave out the other side's volume.
func retarget(c run.Command, side string, n int) run.Command {
	names := strings.NewReplacer(
		fmt.Sprintf("-%s-0", model), fmt.Sprintf("-%s-%d", side, n),
		fmt.Sprintf("-%s-1", model), fmt.Sprintf("-%s-%d", side, n),
		"data-0", fmt.Sprintf("data-%d", n),
		poolName(socketSide), poolName(side),
	)
	args := make([]string, 0, len(c.Args))
	for i := 0; i < len(c.Args); i++ {
		if c.Args[i] == "--select" && i+1 < len(c.Args) && strings.Contains(c.Args[i+1], "lv_uuid=") {
			i++
			continue
		}
		args = append(args, names.Replace(c.Args[i]))
	}
	c.Args = args
	return c
}

// recorder is a runner that remembers the commands that changed something.
type recorder struct {
	run.Runner
	mu       sync.Mutex
	commands []run.Command
}

// Change implements run.Runner. It drops failed commands: Berth tries those again.
func (r *recorder) Change(c run.Command) ([]byte, error) {
	out, err := r.Runner.Change(c)
	if err == nil {
		r.mu.Lock()
		r.commands = append(r.commands, c)
		r.mu.Unlock()
	}
	return out, err
}

func (r *recorder) take() (commands []run.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	commands, r.commands = r.commands, nil
	return commands
}
