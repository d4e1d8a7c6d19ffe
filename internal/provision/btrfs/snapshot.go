package btrfs

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// Snapshot implements provision.Snapshotter.
func (p *Provisioner) Snapshot(ctx context.Context, r provision.SnapshotRequest) (s provision.Snapshot, err error) {
	if err := r.Check(); err != nil {
		return s, err
	}
	fsid, err := p.locate(ctx, r.ID)
	if errors.Is(err, provision.ErrNotFound) {
		fsid, err = p.locate(ctx, r.Volume)
	}
	if err != nil {
		return s, err
	}
	beside := func() engine.Beside { return engine.Beside{Alters: r.Volume} }
	err = p.carryOut(ctx, change{Unit: fsid, ID: r.ID, Beside: beside}, func(u *facts) (effect, error) {
		m, err := p.planSnapshot(u, r)
		if m == nil || err != nil {
			return nil, err
		}
		return func(f Filesystem) (func(*facts), error) { return m.build(f, fsid) }, nil
	})
	if err != nil {
		return s, err
	}
	return p.viewSnapshot(fsid, r.ID)
}

// planSnapshot returns the snapshot that is to be taken; nil if it is there. There must be room
// for all of its volume to be overwritten afterwards.
func (p *Provisioner) planSnapshot(u *facts, r provision.SnapshotRequest) (*making, error) {
	switch s := u.snapshots[r.ID]; {
	case u.known() != nil:
		return nil, u.known()
	case s != nil && s.Volume != r.Volume:
		return nil, fmt.Errorf("%w: snapshot %s is of volume %s", provision.ErrConflict, r.ID, s.Volume)
	case s != nil:
		return nil, nil
	case u.trash[r.ID] != nil, u.others[r.ID]:
		return nil, fmt.Errorf("%w: the place of snapshot %s is still taken", provision.ErrUnavailable, r.ID)
	}
	v, err := u.volume(r.Volume)
	if err != nil {
		return nil, err
	}
	if err := v.sound(); err != nil {
		return nil, err
	}
	if err := u.usable(p.config.Now()); err != nil {
		return nil, err
	}
	m := &making{area: snapshotsArea, left: u.making[r.ID], record: record{ID: r.ID, Size: v.Size, Volume: v.ID, Taken: p.config.Now().UTC().Truncate(1e9)}}
	return m, r.Limits.Admit(u.pool(p.config.Now()), m.copies(v, volumesArea, u.tally()))
}

// GetSnapshot implements provision.Snapshotter.
func (p *Provisioner) GetSnapshot(ctx context.Context, id string) (s provision.Snapshot, err error) {
	if err := provision.CheckSnapshotID(id); err != nil {
		return s, err
	}
	fsid, err := p.locate(ctx, id)
	if err != nil {
		return s, err
	}
	return p.viewSnapshot(fsid, id)
}

func (p *store) viewSnapshot(fsid, id string) (s provision.Snapshot, err error) {
	err = fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	p.engine.With(fsid, func(u *facts) {
		if u != nil && u.snapshots[id] != nil {
			s, err = u.viewSnapshot(u.snapshots[id], u.tally()), nil
		}
	})
	return s, err
}

// DeleteSnapshot implements provision.Snapshotter.
func (p *Provisioner) DeleteSnapshot(ctx context.Context, id string) error {
	if err := provision.CheckSnapshotID(id); err != nil {
		return err
	}
	return p.remove(ctx, id, snapshotsArea)
}
