package btrfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// Create implements provision.Provisioner.
func (p *Provisioner) Create(ctx context.Context, r provision.CreateRequest) (v provision.Volume, err error) {
	if err := r.Check(); err != nil {
		return v, err
	}
	fsid, err := p.poolFor(ctx, r)
	if err != nil {
		return v, err
	}
	err = p.engine.CarryOut(ctx, change{
		Unit: fsid, ID: r.ID,
		Beside: func() engine.Beside { return engine.Beside{Alters: r.Source.Volume, Keeps: r.Source.Snapshot} },
		Plan: p.planned(fsid, "make "+r.ID, func(u *facts) (func(Filesystem) (func(*facts), error), error) {
			m, err := u.planCreate(r, p.config.Now())
			if m == nil || err != nil {
				return nil, err
			}
			return func(f Filesystem) (func(*facts), error) { return p.make(f, fsid, *m) }, nil
		}),
	})
	if err != nil {
		return v, err
	}
	return p.view(fsid, r.ID)
}

// poolFor returns the filesystem of a request, once it is certain that no other has the volume.
func (p *Provisioner) poolFor(ctx context.Context, r provision.CreateRequest) (fsid string, err error) {
	for _, look := range []func(context.Context) error{p.engine.LoadOnce, p.engine.RefreshDue} {
		if err := look(ctx); err != nil {
			return "", err
		}
		p.engine.Lock()
		holder, err := p.holder(r.ID)
		for id, u := range p.engine.Units() {
			switch {
			case u.ref() != r.Pool:
				if err == nil && id == holder {
					err = fmt.Errorf("%w: %s is in filesystem %s", provision.ErrConflict, r.ID, u.label)
				}
			case fsid == "" || !u.missing:
				fsid = id
			}
		}
		if err == nil {
			err = p.namesakes(strings.TrimPrefix(r.Pool.Name, provision.BtrfsPrefix))
		}
		p.engine.Unlock()
		if err != nil || fsid != "" {
			return fsid, err
		}
	}
	return "", fmt.Errorf("%w: no filesystem of btrfs with the label %s is mounted on the node", provision.ErrPoolMissing, strings.TrimPrefix(r.Pool.Name, provision.BtrfsPrefix))
}

// planCreate returns the volume that is to be made; nil if it is there.
func (u *facts) planCreate(r provision.CreateRequest, now time.Time) (*making, error) {
	size := provision.RoundUp(r.Size, unit)
	switch e := u.volumes[r.ID]; {
	case u.missing:
		return nil, u.usable(now)
	case e != nil && (e.Size != size || e.Inline != r.Inline || e.Source != r.Source):
		return nil, fmt.Errorf("%w: volume %s exists with %d bytes, for %+v, from %+v", provision.ErrConflict, r.ID, e.Size, e.Inline, e.Source)
	case e != nil:
		return nil, e.sound()
	case u.others[r.ID]:
		return nil, fmt.Errorf("%w: %s/%s of filesystem %s is not Berth's", provision.ErrConflict, volumesArea, r.ID, u.label)
	case u.trash[r.ID] != nil:
		return nil, fmt.Errorf("%w: what was volume %s is still being removed", provision.ErrUnavailable, r.ID)
	}
	m := &making{area: volumesArea, left: u.making[r.ID], record: record{ID: r.ID, Size: size, Inline: r.Inline, Source: r.Source, Labels: r.Labels}}
	needs := size
	from, isSnapshot := u.snapshots[r.Source.Snapshot], r.Source.Snapshot != ""
	if !isSnapshot {
		from = u.volumes[r.Source.Volume]
	}
	switch {
	case r.Source == provision.Source{}:
	case from == nil:
		return nil, fmt.Errorf("%w: %s%s", provision.ErrNotFound, r.Source.Snapshot, r.Source.Volume)
	default:
		if err := errors.Join(r.Fits(u.ref(), from.Size), from.sound()); err != nil {
			return nil, err
		}
		m.Filesystem, m.Pins, m.of = from.Filesystem, maps.Clone(from.Pins), path.Join(snapshotsArea, from.ID)
		t := u.tally()
		needs += t.keeps(from)
		if !isSnapshot {
			m.of, m.source, m.bound = path.Join(volumesArea, from.ID), from, t.limit(from)+from.Size
			needs += from.Size
		}
	}
	if err := u.usable(now); err != nil {
		return nil, err
	}
	return m, r.Limits.Admit(u.pool(now), needs)
}
