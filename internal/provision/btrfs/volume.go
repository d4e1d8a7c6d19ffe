package btrfs

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// Expand implements provision.Provisioner.
func (p *Provisioner) Expand(ctx context.Context, r provision.ExpandRequest) (v provision.Volume, err error) {
	if err := r.Check(); err != nil {
		return v, err
	}
	fsid, err := p.locate(ctx, r.ID)
	if err != nil {
		return v, err
	}
	size := provision.RoundUp(r.Size, unit)
	err = p.engine.CarryOut(ctx, change{Unit: fsid, ID: r.ID, Plan: p.planned(fsid, "expand "+r.ID, func(u *facts) (func(Filesystem) (func(*facts), error), error) {
		e, err := u.volume(r.ID)
		if err != nil || e.Size >= size {
			return nil, err
		}
		if err := u.usable(p.config.Now()); err != nil {
			return nil, err
		}
		if err := r.Limits.Admit(u.pool(p.config.Now()), size-e.Size); err != nil {
			return nil, err
		}
		bound, grown := u.tally().limit(e)+size-e.Size, e.record
		grown.Size = size
		return func(f Filesystem) (func(*facts), error) {
			if err := f.Limit(e.Subvolume.ID, bound); err != nil {
				return nil, err
			}
			return rewrite(f, grown, func(e *entry) { e.bound = bound })
		}, nil
	})})
	if err != nil {
		return v, err
	}
	return p.view(fsid, r.ID)
}

// volume returns a volume that may be changed.
func (u *facts) volume(id string) (*entry, error) {
	e := u.volumes[id]
	switch {
	case e == nil:
		return nil, fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	case u.missing || u.Read.IsZero():
		return nil, u.usable(u.Read)
	}
	return e, e.sound()
}

// rewrite writes the record of a volume anew.
func rewrite(f Filesystem, r record, learnt func(*entry)) (learn func(*facts), err error) {
	if err := write(f, volumesArea+"/"+r.ID, r); err != nil {
		return nil, err
	}
	return func(u *facts) {
		if e := u.volumes[r.ID]; e != nil {
			e.record = r
			learnt(e)
		}
	}, f.Sync()
}

// Format implements provision.Provisioner. Nothing is made: the record alone says that a volume
// may hold data from now on.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	return engine.Formatter{
		IDs: &p.engine.IDLocks, Tasks: &p.engine.Tasks, Get: p.Get, Record: p.recordFormat,
		View: func(ctx context.Context, v provision.Volume) (provision.Volume, error) { return p.Get(ctx, v.ID) },
	}.Format(ctx, r)
}

func (p *Provisioner) recordFormat(ctx context.Context, v provision.Volume, filesystem string) error {
	fsid, err := p.locate(ctx, v.ID)
	if err != nil {
		return err
	}
	return p.engine.CarryOutLocked(ctx, func() {}, change{Unit: fsid, ID: v.ID, Plan: p.planned(fsid, "record "+v.ID, func(u *facts) (func(Filesystem) (func(*facts), error), error) {
		e, err := u.volume(v.ID)
		if err != nil || e.Filesystem == filesystem {
			return nil, err
		}
		formatted := e.record
		formatted.Filesystem = filesystem
		return func(f Filesystem) (func(*facts), error) { return rewrite(f, formatted, func(*entry) {}) }, nil
	})})
}

// Delete implements provision.Provisioner. A volume is deleted once it was moved to the trash.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	return p.remove(ctx, id, volumesArea)
}

// DeleteSnapshot implements provision.Snapshotter.
func (p *Provisioner) DeleteSnapshot(ctx context.Context, id string) error {
	if err := provision.CheckSnapshotID(id); err != nil {
		return err
	}
	return p.remove(ctx, id, snapshotsArea)
}

// remove moves a volume or snapshot to the trash. Btrfs would destroy a volume that is mounted,
// so remove first looks whether it is.
func (p *Provisioner) remove(ctx context.Context, id, area string) error {
	fsid, err := p.locate(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		return p.foreign(id)
	}
	if err != nil {
		return err
	}
	from, to := area+"/"+id, trashArea+"/"+id
	return p.engine.CarryOut(ctx, change{Unit: fsid, ID: id, Plan: p.planned(fsid, "remove "+id, func(u *facts) (func(Filesystem) (func(*facts), error), error) {
		entries := u.volumes
		if area == snapshotsArea {
			entries = u.snapshots
		}
		e := entries[id]
		switch {
		case e == nil:
			return nil, nil
		case u.missing:
			return nil, u.usable(p.config.Now())
		case u.trash[id] != nil:
			return nil, fmt.Errorf("%w: what was %s before is still being removed", provision.ErrUnavailable, id)
		case e.root.ID != 0:
			if err := e.sound(); err != nil {
				return nil, err
			}
		}
		return func(f Filesystem) (func(*facts), error) {
			switch users, err := p.config.Users("/" + from); {
			case err != nil:
				return nil, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
			case len(users) > 0:
				return nil, fmt.Errorf("%w: %s is mounted at %s", provision.ErrInUse, id, users[0])
			}
			if err := errors.Join(f.Make(trashArea), f.Move(from, to)); err != nil {
				return nil, err
			}
			return func(u *facts) {
				delete(entries, id)
				u.trash[id] = e
			}, f.Sync()
		}, nil
	})})
}

// foreign returns ErrConflict if something that is not Berth's has the place of an id.
func (p *Provisioner) foreign(id string) error {
	for _, u := range p.engine.All() {
		if u.others[id] {
			return fmt.Errorf("%w: %s of filesystem %s is not Berth's", provision.ErrConflict, id, u.label)
		}
	}
	return nil
}

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
	err = p.engine.CarryOut(ctx, change{
		Unit: fsid, ID: r.ID, Beside: func() engine.Beside { return engine.Beside{Alters: r.Volume} },
		Plan: p.planned(fsid, "take "+r.ID, func(u *facts) (func(Filesystem) (func(*facts), error), error) {
			m, err := p.planSnapshot(u, r)
			if m == nil || err != nil {
				return nil, err
			}
			return func(f Filesystem) (func(*facts), error) { return p.make(f, fsid, *m) }, nil
		}),
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
	case u.missing:
		return nil, u.usable(p.config.Now())
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
	if err := u.usable(p.config.Now()); err != nil {
		return nil, err
	}
	t := u.tally()
	m := &making{area: snapshotsArea, of: volumesArea + "/" + v.ID, source: v, bound: t.limit(v) + v.Size, left: u.making[r.ID], record: record{
		ID: r.ID, Size: v.Size, Filesystem: v.Filesystem, Volume: v.ID, Taken: p.config.Now().UTC().Truncate(1e9), Pins: maps.Clone(v.Pins),
	}}
	return m, r.Limits.Admit(u.pool(p.config.Now()), v.Size+t.keeps(v))
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

func (p *Provisioner) viewSnapshot(fsid, id string) (s provision.Snapshot, err error) {
	err = fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	p.engine.With(fsid, func(u *facts) {
		if u != nil && u.snapshots[id] != nil {
			s, err = u.viewSnapshot(u.snapshots[id], u.tally()), nil
		}
	})
	return s, err
}
