package main

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// side carries out operations on volumes that are numbered from 0.
type side interface {
	do(ctx context.Context, operation string, n int) error
}

// Ids contain the side's name, because an id must be unique on a node, and the volume's number.

func volumeID(side string, n int) string   { return fmt.Sprintf("pvc-%s-%d", side, n) }
func snapshotID(side string, n int) string { return fmt.Sprintf("snap-%s-%d", side, n) }
func cloneID(side string, n int) string    { return fmt.Sprintf("pvc-%s-%d-clone", side, n) }

// berth is a side that goes through Berth.
type berth struct {
	name       string
	node       provision.Full
	pool       provision.PoolRef
	filesystem string
}

// newBerth returns a side with volumes in its pool of a kind.
func newBerth(name string, node provision.Full, pool string) berth {
	b := berth{name: name, node: node, pool: poolOf(pool, name)}
	if pool == dataset {
		b.filesystem = provision.Dataset
	}
	return b
}

const volumeSize = 16 << 20

func (b berth) do(ctx context.Context, operation string, n int) (err error) {
	// The limits are those of a usual class: a thin pool promises more than it has.
	limits := provision.Limits{Overprovision: provision.MaxOverprovision}
	request := provision.CreateRequest{
		ID: volumeID(b.name, n), Pool: b.pool, Size: volumeSize, Limits: limits, Wipe: provision.WipeNone, Tree: b.filesystem,
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
	case deletion, deleteCopied:
		err = b.node.Delete(ctx, request.ID)
	case deleteSnapshot:
		err = b.node.DeleteSnapshot(ctx, snapshotID(b.name, n))
	default:
		err = errors.ErrUnsupported
	}
	return err
}

// bare is a side that starts commands without Berth.
type bare struct {
	name      string
	runner    run.Runner
	templates map[string][]run.Command
}

func (b bare) do(_ context.Context, operation string, n int) error {
	if len(b.templates[operation]) == 0 {
		return errors.ErrUnsupported
	}
	for _, c := range b.templates[operation] {
		if _, err := b.runner.Change(retarget(c, b.name, n)); err != nil {
			return err
		}
	}
	return nil
}

// sidesOf makes the sides of a series. Each side rehearses the series, so that work that is
// done once per pool is done then. From Berth's rehearsal sidesOf learns Berth's commands.
func sidesOf(ctx context.Context, s series, d disksOf) (map[string]side, error) {
	through := newBerth(socketSide, d.remote, s.pool)
	if err := s.rehearse(ctx, through, warmUp); err != nil {
		return nil, err
	}
	learnt, err := s.learn(ctx, through, d.changes)
	if err != nil {
		return nil, err
	}
	all := map[string]side{socketSide: through}
	for _, name := range s.names {
		switch name {
		case socketSide:
			continue
		case localSide:
			all[name] = newBerth(name, d.local, s.pool)
		case bareSide:
			all[name] = bare{name, d.bare, typed(s.pool, learnt)}
		}
		if err := s.rehearse(ctx, all[name], warmUp); err != nil {
			return nil, fmt.Errorf("by %s: %w", name, err)
		}
	}
	return all, nil
}
