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
	pool, taken, err := p.state.find(r.ID)
	if err != nil {
		return provision.Snapshot{}, err
	}
	if !taken {
		if pool, err = p.locate(ctx, r.Volume); err != nil {
			return provision.Snapshot{}, err
		}
	}
	name, thin := split(pool)
	changes := []change{p.thinSnapshot(pool, r)}
	if thin == "" {
		if err := p.cowable(r.ID); err != nil {
			return provision.Snapshot{}, err
		}
		changes = p.thickSnapshot(name, r)
	}
	defer p.nudge()
	if err := p.carryOut(ctx, changes...); err != nil {
		return provision.Snapshot{}, err
	}
	return p.viewSnapshot(name, r.ID)
}

func (p *Provisioner) thinSnapshot(pool provision.PoolRef, r provision.SnapshotRequest) change {
	name, thin := split(pool)
	var next snapshot
	return change{
		group: name, id: r.ID, thin: thin, grows: true, writes: makes(thin),
		plan: func(g *group, _ bool) (done bool, size int64, err error) {
			if done, size, err = g.planSnapshot(r, p.config.Now()); !done && err == nil {
				next = snapshot{carved: g.snapshotOf(r.Volume), of: r.Volume, taken: p.now()}
			}
			return done, size, err
		},
		command: func(int64) run.Command { return p.config.snapshotCommand(name, r.ID, next) },
		learn:   func(g *group, _ int64) { g.snapshots[r.ID] = &next },
	}
}

// thickSnapshot fixes what the volume holds, and then makes what is filled with that.
func (p *Provisioner) thickSnapshot(name string, r provision.SnapshotRequest) []change {
	plan := func(g *group) (done bool, size int64, err error) { return g.planSnapshot(r, p.config.Now()) }
	var next snapshot
	return []change{
		p.cow(name, r.ID, r.Volume, func(g *group) (done bool, err error) {
			done, _, err = plan(g)
			return done, err
		}),
		{
			group: name, id: r.ID, makes: r.ID,
			plan: func(g *group, _ bool) (done bool, size int64, err error) {
				if done, size, err = plan(g); !done && err == nil {
					next = snapshot{carved: g.snapshotOf(r.Volume), of: r.Volume, taken: p.now()}
					err = g.kept(r.ID)
				}
				return done, size, err
			},
			command: func(size int64) run.Command { return p.config.thickCommand(name, r.ID, size, snapshotTags(r.ID, next)) },
			learn: func(g *group, _ int64) {
				g.snapshots[r.ID], g.pendingOf(r.ID).due = &next, p.config.Now()
			},
		},
	}
}

// snapshotOf is a snapshot of a volume, as it is carved.
func (g *group) snapshotOf(volume string) carved {
	v := g.volumes[volume]
	thick := v.pool == ""
	return carved{pool: v.pool, size: v.size, filesystem: v.filesystem, wipe: v.wipe, active: thick, copying: thick}
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
	if p.state.left(id) {
		return nil // deleted, and being wiped
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
