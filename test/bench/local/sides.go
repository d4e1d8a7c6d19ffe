package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// side carries out operations on volumes that are numbered from 0.
type side interface {
	do(ctx context.Context, operation string, n int) error
}

// Ids bear the side's name, since they are unique on a node, and the number of the volume.

func volumeID(side string, n int) string   { return fmt.Sprintf("pvc-%s-%d", side, n) }
func snapshotID(side string, n int) string { return fmt.Sprintf("snap-%s-%d", side, n) }
func cloneID(side string, n int) string    { return fmt.Sprintf("pvc-%s-%d-clone", side, n) }

// groupOf is the volume group of a side.
func groupOf(side string) string { return "vg-" + side }

// berth is a side that goes through Berth.
type berth struct {
	name string
	node provision.Full
	pool provision.PoolRef
}

const volumeSize = 16 << 20

func (b berth) do(ctx context.Context, operation string, n int) (err error) {
	// A class like others: a thin pool promises more than it has.
	limits := provision.Limits{Overprovision: provision.MaxOverprovision}
	request := provision.CreateRequest{
		ID: volumeID(b.name, n), Pool: b.pool, Size: volumeSize, Limits: limits, Wipe: provision.WipeNone,
		Labels: map[string]string{"claim": fmt.Sprintf("data-%d", n), "namespace": "bench"},
	}
	switch operation {
	case create:
		_, err = b.node.Create(ctx, request)
	case clone:
		request.ID, request.Source.Volume = cloneID(b.name, n), request.ID
		_, err = b.node.Create(ctx, request)
	case snapshot:
		_, err = b.node.Snapshot(ctx, provision.SnapshotRequest{ID: snapshotID(b.name, n), Volume: request.ID, Limits: limits})
	case deletion:
		err = b.node.Delete(ctx, request.ID)
	case deleteSnapshot:
		err = b.node.DeleteSnapshot(ctx, snapshotID(b.name, n))
	default:
		err = errors.ErrUnsupported
	}
	return err
}

// bare is a side that starts the commands alone.
type bare struct {
	runner    run.Runner
	templates map[string]run.Command
}

func (b bare) do(_ context.Context, operation string, n int) error {
	_, err := b.runner.Change(retarget(b.templates[operation], n))
	return err
}

// model is the side whose commands are the templates of the bare ones.
const model = "model"

// retarget turns a command about volume 0 of the model, made in the group of socketSide,
// into the same about a volume of the bare side.
func retarget(c run.Command, n int) run.Command {
	names := strings.NewReplacer(
		fmt.Sprintf("-%s-0", model), fmt.Sprintf("-%s-%d", bareSide, n),
		"data-0", fmt.Sprintf("data-%d", n),
		groupOf(socketSide), groupOf(bareSide),
	)
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = names.Replace(a)
	}
	c.Args = args
	return c
}

// learn has Berth carry out operations on the model's volume and returns the commands
// that it starts: one for each, or the bare side would not do the same.
func learn(ctx context.Context, b berth, r *recorder, operations []string) (map[string]run.Command, error) {
	b.name = model
	templates := map[string]run.Command{}
	for _, operation := range operations {
		r.take()
		if err := b.do(ctx, operation, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", operation, err)
		}
		commands := r.take()
		if len(commands) != 1 {
			return nil, fmt.Errorf("%s started %d commands that change something, and is compared with one: %v", operation, len(commands), commands)
		}
		templates[operation] = commands[0]
	}
	return templates, nil
}

// recorder is a runner that remembers the commands that change something.
type recorder struct {
	run.Runner
	mu       sync.Mutex
	commands []run.Command
}

// Change implements run.Runner.
func (r *recorder) Change(c run.Command) ([]byte, error) {
	r.mu.Lock()
	r.commands = append(r.commands, c)
	r.mu.Unlock()
	return r.Runner.Change(c)
}

func (r *recorder) take() (commands []run.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	commands, r.commands = r.commands, nil
	return commands
}
