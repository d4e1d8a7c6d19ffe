package zfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// Snapshot implements provision.Snapshotter.
func (p *Provisioner) Snapshot(ctx context.Context, r provision.SnapshotRequest) (s provision.Snapshot, err error) {
	if err := r.Check(); err != nil {
		return s, err
	}
	holder, err := p.locateSnapshot(ctx, r.ID)
	if errors.Is(err, provision.ErrNotFound) {
		if holder, err = p.locateVolume(ctx, r.Volume); err == nil {
			err = p.writeOut(ctx, r.Volume)
		}
	}
	if err != nil {
		return s, err
	}
	err = p.carryOut(ctx, change{
		zpool: holder, id: r.ID,
		plan: func(z *zpool) ([]step, error) { return p.planSnapshot(z, r) },
	})
	if err != nil {
		return s, err
	}
	s, err = p.viewSnapshot(holder, r.ID)
	if err != nil || !s.Taken.IsZero() {
		return s, err
	}
	return p.taken(ctx, holder, r.ID)
}

// taken returns a snapshot that was just taken, with what only ZFS knows: when that
// was and what it holds.
func (p *Provisioner) taken(ctx context.Context, holder, id string) (s provision.Snapshot, err error) {
	unlock, err := p.zpools.Lock(ctx, holder)
	if err != nil {
		return s, err
	}
	p.measure(ctx, holder, id)
	unlock()
	p.signal()
	s, err = p.viewSnapshot(holder, id)
	if err == nil && s.Taken.IsZero() {
		err = fmt.Errorf("%w: snapshot %s was taken, and ZFS does not answer what it holds", provision.ErrUnavailable, id)
	}
	return s, err
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
	return []step{p.snapshotStep(name, d, r.ID, r.ID)}, nil
}

// snapshotStep takes a snapshot; Berth's with an id, and a base without.
func (p *Provisioner) snapshotStep(of string, d *dataset, at, id string) step {
	s := &snapshot{id: id, base: id == "", size: d.size, allocated: d.size, filesystem: d.filesystem, order: d.last() + 1}
	return step{
		command: p.config.snapshotCommand(of, at, snapshotProperties(orNone(id), d)),
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
		plan: func(z *zpool) ([]step, error) {
			of, s := z.snapshot(id)
			if s == nil {
				return nil, nil
			}
			return []step{p.dropStep(of, id)}, z.answers(p.config.Now())
		},
	})
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
