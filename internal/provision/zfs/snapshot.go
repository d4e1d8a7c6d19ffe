package zfs

import (
	"context"
	"errors"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// Snapshot implements provision.Snapshotter.
func (p *Provisioner) Snapshot(ctx context.Context, r provision.SnapshotRequest) (s provision.Snapshot, err error) {
	if err := r.Check(); err != nil {
		return s, err
	}
	holder, err := p.locateFor(ctx, r)
	if err != nil {
		return s, err
	}
	err = p.engine.CarryOut(ctx, zpool.Change{
		Unit: holder, ID: r.ID,
		Beside: func() engine.Beside { return engine.Beside{Alters: r.Volume} },
		Plan:   p.planned(holder, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) { return plan.Snapshot(z, r) }),
	})
	if err != nil {
		return s, err
	}
	return p.viewSnapshot(holder, r.ID)
}

// locateFor returns the zpool that holds a snapshot. If there is none, it writes out the
// volume for the snapshot and returns the volume's zpool. If the volume is known, so is the
// snapshot.
func (p *Provisioner) locateFor(ctx context.Context, r provision.SnapshotRequest) (holder string, err error) {
	if err := p.engine.LoadOnce(ctx); err != nil {
		return "", err
	}
	if holder, there := p.state.find(r.ID, snapshotIn); there {
		return holder, p.state.twins(r.ID)
	}
	if _, known := p.state.find(r.Volume, volumeIn); !known {
		if holder, err := p.locateSnapshot(ctx, r.ID); !errors.Is(err, provision.ErrNotFound) {
			return holder, err
		}
	}
	if holder, err = p.locateVolume(ctx, r.Volume); err != nil {
		return "", err
	}
	return holder, p.writeOut(ctx, r.Volume)
}

// GetSnapshot implements provision.Snapshotter.
func (p *Provisioner) GetSnapshot(ctx context.Context, id string) (s provision.Snapshot, err error) {
	if err := provision.CheckSnapshotID(id); err != nil {
		return s, err
	}
	holder, err := p.locateSnapshot(ctx, id)
	if err != nil {
		return s, err
	}
	return p.viewSnapshot(holder, id)
}

func (p *Provisioner) viewSnapshot(holder, id string) (v provision.Snapshot, err error) {
	err = zpool.NotFound(id)
	p.engine.With(holder, func(z *zpool.Facts) {
		if of, s := z.Snapshot(id); s != nil {
			v, err = z.ViewSnapshot(of, s, p.config.Now()), nil
		}
	})
	return v, err
}

// DeleteSnapshot implements provision.Snapshotter. A snapshot that has clones is no
// snapshot of Berth's from now on. ZFS destroys it with the last of them.
func (p *Provisioner) DeleteSnapshot(ctx context.Context, id string) error {
	if err := provision.CheckSnapshotID(id); err != nil {
		return err
	}
	holder, err := p.locateSnapshot(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.engine.CarryOut(ctx, zpool.Change{
		Unit: holder, ID: id,
		Beside: func() engine.Beside { return engine.Beside{Alters: p.state.volumeOf(id)} },
		Plan: p.planned(holder, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
			of, s := z.Snapshot(id)
			if s == nil {
				return nil, nil
			}
			return []zpool.Step{plan.DropStep(z, of, id)}, z.Answers(p.config.Now())
		}),
	})
}

// volumeOf returns the id of a snapshot's volume; empty if there is none.
func (s *state) volumeOf(snapshot string) (id string) {
	for _, z := range s.All() {
		if of, found := z.Snapshot(snapshot); found != nil {
			id = z.Datasets[of].ID
		}
	}
	return id
}
