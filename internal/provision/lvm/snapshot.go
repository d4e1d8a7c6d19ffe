package lvm

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
)

var _ provision.Full = (*Provisioner)(nil)

// Snapshot implements provision.Snapshotter.
func (p *Provisioner) Snapshot(ctx context.Context, r provision.SnapshotRequest) (provision.Snapshot, error) {
	if err := r.Check(); err != nil {
		return provision.Snapshot{}, err
	}
	if err := p.engine.LoadOnce(ctx); err != nil {
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
	name, thin := group.Split(pool)
	changes := []change{p.thinSnapshot(pool, r)}
	if thin == "" {
		if err := p.copier.cowable(r.ID); err != nil {
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
	name, thin := group.Split(pool)
	return change{group: name, id: r.ID, grows: thin, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Snapshot(g, r) }}
}

// thickSnapshot fixes the volume's data in a copy-on-write snapshot, and then makes the logical
// volume that is filled with it.
func (p *Provisioner) thickSnapshot(name string, r provision.SnapshotRequest) []change {
	return []change{
		p.copier.cow(name, r.ID, r.Volume, func(g *group.Facts) (done bool, err error) {
			_, done, err = p.planner().Snapshotable(g, r)
			return done, err
		}),
		{group: name, id: r.ID, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().SnapshotWhole(g, r) }},
	}
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
	name, _ := group.Split(pool)
	return p.viewSnapshot(name, id)
}

// DeleteSnapshot implements provision.Snapshotter. Volumes made from it do not need it.
func (p *Provisioner) DeleteSnapshot(ctx context.Context, id string) error {
	if err := provision.CheckSnapshotID(id); err != nil {
		return err
	}
	if p.wiper.left(id) {
		return nil // deleted, and being wiped
	}
	return p.remove(ctx, id)
}

func (p *Provisioner) viewSnapshot(name, id string) (s provision.Snapshot, err error) {
	p.engine.With(name, func(g *group.Facts) {
		if g == nil || g.Snapshots[id] == nil {
			err = fmt.Errorf("%w: snapshot %s", provision.ErrNotFound, id)
			return
		}
		s = g.ViewSnapshot(id)
	})
	return s, err
}
