package zfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
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
	err = p.carryOut(ctx, change{
		zpool: holder, id: r.ID,
		besides: func() besides { return besides{alters: r.Volume} },
		plan:    func(z *zpool) ([]step, error) { return p.planSnapshot(z, r) },
	})
	if err != nil {
		return s, err
	}
	return p.viewSnapshot(holder, r.ID)
}

// locateFor returns the zpool that holds a snapshot, or else its volume, which is then
// ready for it. Where the volume is known, the snapshot is, too.
func (p *Provisioner) locateFor(ctx context.Context, r provision.SnapshotRequest) (holder string, err error) {
	if err := p.load(ctx); err != nil {
		return "", err
	}
	if holder, there := p.state.find(r.ID, snapshotIn); there {
		return holder, nil
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

func (p *Provisioner) planSnapshot(z *zpool, r provision.SnapshotRequest) ([]step, error) {
	if of, s := z.snapshot(r.ID); s != nil {
		if d := z.datasets[of]; d.id != r.Volume {
			return nil, fmt.Errorf("%w: snapshot %s is of volume %s", provision.ErrConflict, r.ID, d.id)
		}
		return nil, nil
	}
	name, d := z.volume(r.Volume)
	switch {
	case d == nil:
		return nil, notFound(r.Volume)
	case d.snapshots[r.ID] != nil:
		return nil, fmt.Errorf("%w: %s@%s exists and is no snapshot of Berth's, or was deleted and is kept by its clones", provision.ErrConflict, name, r.ID)
	}
	// How much the snapshot will hold is not known before it is taken: all at most.
	if err := cmp.Or(z.usable(p.config.Now()), z.admit(d.parent, r.Limits, d.size)); err != nil {
		return nil, err
	}
	take := p.snapshotStep(name, d, r.ID, r.ID)
	take.takes, take.parent = d.size, d.parent
	return []step{take}, nil
}

// snapshotStep takes a snapshot; Berth's with an id, and a base without.
func (p *Provisioner) snapshotStep(of string, d *dataset, at, id string) step {
	now := p.config.Now()
	s := &snapshot{
		id: id, base: id == "", size: d.size, allocated: d.size, estimated: id != "", filesystem: d.filesystem, order: d.last() + 1,
		taken: time.Unix(now.Unix(), 0).UTC(),
	}
	return step{
		command: p.config.snapshotCommand(of, at, snapshotProperties(orNone(id), d, now)),
		learn:   func(z *zpool) { z.datasets[of].snapshots[at] = s },
	}
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
	err = notFound(id)
	p.state.with(holder, func(z *zpool) {
		if of, s := z.snapshot(id); s != nil {
			v, err = z.viewSnapshot(of, s, p.config.Now()), nil
		}
	})
	return v, err
}

// DeleteSnapshot implements provision.Snapshotter. A snapshot that has clones is no
// snapshot of Berth's from now on, and goes with the last of them.
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
	return p.carryOut(ctx, change{
		zpool: holder, id: id,
		besides: func() besides { return besides{alters: p.state.volumeOf(id)} },
		plan: func(z *zpool) ([]step, error) {
			of, s := z.snapshot(id)
			if s == nil {
				return nil, nil
			}
			return []step{p.dropStep(of, id)}, z.answers(p.config.Now())
		},
	})
}

// volumeOf is the id of the volume that a snapshot is of; empty if there is none.
func (s *state) volumeOf(snapshot string) (id string) {
	s.each(func(z *zpool) {
		if of, found := z.snapshot(snapshot); found != nil {
			id = z.datasets[of].id
		}
	})
	return id
}

// dropStep removes a snapshot, at once or with the last of its clones.
func (p *Provisioner) dropStep(of, at string) step {
	return step{
		command: p.config.dropCommand(of + "@" + at),
		learn: func(z *zpool) {
			d := z.datasets[of]
			if !z.cloned(of + "@" + at) {
				delete(d.snapshots, at)
				return
			}
			d.snapshots[at].id, d.snapshots[at].deferred = "", true
		},
	}
}
