package btrfs

import (
	"context"
	"errors"
	"fmt"

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
	err = p.carryOut(ctx, change{Unit: fsid, ID: r.ID}, func(u *facts) (effect, error) {
		e, err := u.volume(r.ID)
		if err != nil || e.Size >= size {
			return nil, err
		}
		if err := u.usable(p.config.Now()); err != nil {
			return nil, err
		}
		bound, grown := u.tally().limit(e)+size-e.Size, e.record
		grown.Size = size
		return func(f Filesystem) (func(*facts), error) {
			if err := e.limit(f, bound); err != nil {
				return nil, err
			}
			return rewrite(f, grown, bound)
		}, r.Limits.Admit(u.pool(p.config.Now()), size-e.Size)
	})
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
	case u.known() != nil:
		return nil, u.known()
	case e.held != nil && e.root.ID == 0: // a copy that receives has no head
		return e, nil
	}
	return e, e.sound()
}

// rewrite writes the record of a volume anew. The volume has that limit.
func rewrite(f Filesystem, r record, bound int64) (learn func(*facts), err error) {
	if err := r.write(f, volumesArea+"/"+r.ID); err != nil {
		return nil, err
	}
	return func(u *facts) {
		if e := u.volumes[r.ID]; e != nil {
			e.record, e.bound = r, bound
		}
	}, f.Commit()
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
	c := change{Unit: fsid, ID: v.ID}
	c.Plan = p.planned(c, func(u *facts) (effect, error) {
		e, err := u.volume(v.ID)
		if err != nil || e.Filesystem == filesystem {
			return nil, err
		}
		formatted := e.record
		formatted.Filesystem = filesystem
		return func(f Filesystem) (func(*facts), error) { return rewrite(f, formatted, e.bound) }, nil
	})
	return p.engine.CarryOutLocked(ctx, func() {}, c)
}

// Delete implements provision.Provisioner. A volume is deleted once it was moved to the trash.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	return p.remove(ctx, id, volumesArea)
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
	return p.carryOut(ctx, change{Unit: fsid, ID: id}, func(u *facts) (effect, error) {
		entries := u.volumes
		if area == snapshotsArea {
			entries = u.snapshots
		}
		e := entries[id]
		switch {
		case u.known() != nil:
			return nil, u.known()
		case e == nil:
			return nil, nil
		case u.trash[id] != nil:
			return nil, fmt.Errorf("%w: what was %s before is still being removed", provision.ErrUnavailable, id)
		case e.root.ID != 0 && e.sound() != nil:
			return nil, e.sound()
		}
		return func(f Filesystem) (func(*facts), error) {
			learn := func(u *facts) {
				delete(entries, id)
				u.trash[id] = e
			}
			return learn, each(
				func() error { return unused(f, e.root.ID, id, "/"+area+"/"+id) },
				func() error { return f.Make(trashArea) },
				func() error { return f.Move(area+"/"+id, trashArea+"/"+id) },
				f.Commit,
			)
		}, nil
	})
}

// unused returns ErrInUse if a volume or snapshot is mounted: its subvolume, or what is at its path.
func unused(f Filesystem, subvolume uint64, id, at string) error {
	switch users, err := f.Users(subvolume, at); {
	case err != nil:
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	case len(users) > 0:
		return fmt.Errorf("%w: %s is mounted at %s", provision.ErrInUse, id, users[0])
	}
	return nil
}

// foreign returns ErrConflict if something that is not Berth's has the place of an id.
func (p *store) foreign(id string) error {
	for _, u := range p.engine.All() {
		if u.others[id] {
			return fmt.Errorf("%w: %s of filesystem %s is not Berth's", provision.ErrConflict, id, u.label)
		}
	}
	return nil
}
