package lvm

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

var _ provision.Full = (*Provisioner)(nil)

// Snapshot implements provision.Snapshotter.
func (p *Provisioner) Snapshot(ctx context.Context, r provision.SnapshotRequest) (provision.Snapshot, error) {
	if err := r.Check(); err != nil {
		return provision.Snapshot{}, err
	}
	if err := p.load(ctx); err != nil {
		return provision.Snapshot{}, err
	}
	pool, taken := p.state.find(r.ID)
	if !taken {
		var err error
		if pool, err = p.locate(ctx, r.Volume); err != nil {
			return provision.Snapshot{}, err
		}
	}
	name, thin := split(pool)
	var next snapshot
	err := p.carryOut(ctx, change{
		group: name, id: r.ID, thin: thin, grows: thin != "", writes: makes(thin),
		plan: func(g *group, _ bool) (done bool, size int64, err error) {
			if done, size, err = g.planSnapshot(r, p.config.Now()); !done && err == nil {
				v := g.volumes[r.Volume]
				next = snapshot{carved: carved{pool: v.pool, size: size, filesystem: v.filesystem}, of: r.Volume, taken: p.now()}
			}
			return done, size, err
		},
		command: func(int64) run.Command { return p.config.snapshotCommand(name, r.ID, next) },
		learn:   func(g *group, _ int64) { g.snapshots[r.ID] = &next },
	})
	if err != nil {
		return provision.Snapshot{}, err
	}
	return p.viewSnapshot(name, r.ID)
}

// GetSnapshot implements provision.Snapshotter.
func (p *Provisioner) GetSnapshot(ctx context.Context, id string) (provision.Snapshot, error) {
	if err := provision.CheckSnapshotID(id); err != nil {
		return provision.Snapshot{}, err
	}
	pool, err := p.locate(ctx, id)
	if err != nil {
		return provision.Snapshot{}, err
	}
	name, _ := split(pool)
	return p.viewSnapshot(name, id)
}

// DeleteSnapshot implements provision.Snapshotter. Volumes made from it do not need it.
func (p *Provisioner) DeleteSnapshot(ctx context.Context, id string) error {
	if err := provision.CheckSnapshotID(id); err != nil {
		return err
	}
	return p.remove(ctx, id)
}

func (p *Provisioner) viewSnapshot(name, id string) (s provision.Snapshot, err error) {
	p.state.with(name, func(g *group) {
		if g == nil || g.snapshots[id] == nil {
			err = fmt.Errorf("%w: snapshot %s", provision.ErrNotFound, id)
			return
		}
		s = g.viewSnapshot(id)
	})
	return s, err
}
