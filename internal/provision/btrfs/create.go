package btrfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	p.want(r.Pool)
	fsid, err := p.poolFor(ctx, r)
	if err != nil {
		return v, err
	}
	err = p.carryOut(ctx, change{
		Unit: fsid, ID: r.ID,
		Beside: func() engine.Beside { return engine.Beside{Alters: r.Source.Volume, Keeps: r.Source.Snapshot} },
	}, func(u *facts) (effect, error) {
		if there, err := u.has(r); there || err != nil {
			return nil, err
		}
		m, err := u.planCreate(r, p.config.Now())
		return func(f Filesystem) (func(*facts), error) { return m.build(f, fsid) }, err
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
		if err == nil && holder != "" && holder != fsid { // two have the label, and one of them went
			err = fmt.Errorf("%w: %s is in filesystem %s (%s), which is not mounted", provision.ErrUnavailable, r.ID, p.engine.Units()[holder].label, holder)
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

// has says whether a volume is there as it is requested. The error says that something else is, or
// that this is not known.
func (u *facts) has(r provision.CreateRequest) (bool, error) {
	switch e := u.volumes[r.ID]; {
	case u.known() != nil:
		return false, u.known()
	case e != nil && (e.Size != provision.RoundUp(r.Size, unit) || e.Inline != r.Inline || e.Source != r.Source):
		return false, fmt.Errorf("%w: volume %s exists with %d bytes, for %+v, from %+v", provision.ErrConflict, r.ID, e.Size, e.Inline, e.Source)
	case e != nil && e.held != nil && e.root.ID == 0: // a copy that receives has no head
		return true, nil
	case e != nil:
		return true, e.sound()
	case u.others[r.ID]:
		return false, fmt.Errorf("%w: %s/%s of filesystem %s is not Berth's", provision.ErrConflict, volumesArea, r.ID, u.label)
	case u.trash[r.ID] != nil:
		return false, fmt.Errorf("%w: what was volume %s is still being removed", provision.ErrUnavailable, r.ID)
	}
	return false, nil
}

// planCreate returns the volume that is to be made.
func (u *facts) planCreate(r provision.CreateRequest, now time.Time) (m making, err error) {
	m = making{area: volumesArea, left: u.making[r.ID], record: record{
		ID: r.ID, Size: provision.RoundUp(r.Size, unit), Inline: r.Inline, Source: r.Source, Labels: r.Labels,
	}}
	needs := m.Size
	if r.Source != (provision.Source{}) {
		from, dir := u.snapshots[r.Source.Snapshot], snapshotsArea
		if r.Source.Volume != "" {
			from, dir = u.volumes[r.Source.Volume], volumesArea
		}
		if from == nil {
			return m, fmt.Errorf("%w: %s%s", provision.ErrNotFound, r.Source.Snapshot, r.Source.Volume)
		}
		if err := errors.Join(r.Fits(u.ref(), from.Size), from.sound()); err != nil {
			return m, err
		}
		needs += m.copies(from, dir, u.tally())
	}
	if err := u.usable(now); err != nil {
		return m, err
	}
	return m, r.Limits.Admit(u.pool(now), needs)
}

// copies makes what is made a copy of an entry, and returns how much more room the pool must have
// for that: all of a source that is a volume may be overwritten.
func (m *making) copies(from *entry, area string, t tally) (needs int64) {
	m.of, m.is, m.Filesystem, m.Pins = area+"/"+from.ID, from.Subvolume, from.Filesystem, maps.Clone(from.Pins)
	maps.DeleteFunc(m.Pins, func(id uint64, _ int64) bool { return !t.here[id] })
	if area == snapshotsArea {
		return t.keeps(from)
	}
	if m.Pins == nil {
		m.Pins = map[uint64]int64{}
	}
	m.source, m.bound = from, t.limit(from)+from.Size
	return t.keeps(from) + from.Size
}
