package btrfs

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/engine"
)

type (
	step   = engine.Step[*facts]
	change = engine.Change[*facts]
)

// planned returns a plan that is a single step on an open filesystem. Without a step the request
// is met.
func (p *Provisioner) planned(fsid, name string, plan func(u *facts) (do func(f Filesystem) (learn func(*facts), err error), err error)) func(*facts, bool) ([]step, error) {
	return func(u *facts, _ bool) ([]step, error) {
		if u == nil {
			return nil, fmt.Errorf("%w: filesystem %s is not mounted", provision.ErrPoolMissing, fsid)
		}
		do, err := plan(u)
		if do == nil || err != nil {
			return nil, err
		}
		return []step{{Name: name, Do: func(context.Context) (func(*facts), error) {
			f, err := p.config.Open(fsid)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
			}
			defer f.Close()
			learn, err := do(f)
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
				err = fmt.Errorf("%w: %w", provision.ErrNoSpace, err)
			}
			return learn, err
		}}}, nil
	}
}

// making is a volume or snapshot that is made.
type making struct {
	record
	area string
	// of is the directory whose subvolume it is a copy of; empty for a blank volume. source is the
	// volume in that directory, nil for a snapshot.
	of     string
	source *entry
	// bound of the source while the copy is made: all of the source may be overwritten after.
	bound int64
	// left is what an attempt that failed left over.
	left *entry
}

// make makes a volume or snapshot. It is made elsewhere, and is there once it was moved to its
// place.
func (p *Provisioner) make(f Filesystem, fsid string, m making) (learn func(*facts), err error) {
	at := makingArea + "/" + m.ID
	kept := m.area == snapshotsArea
	if m.left != nil {
		if err := errors.Join(destroy(f, m.left), f.Remove(at)); err != nil {
			return nil, fmt.Errorf("removing what is left of an attempt to make %s: %w", m.ID, err)
		}
	}
	if err := errors.Join(f.Make(m.area), f.Make(at)); err != nil {
		return nil, err
	}
	if m.source != nil {
		if err := f.Limit(m.source.Subvolume.ID, m.bound); err != nil {
			return nil, err
		}
	}
	if m.of == "" {
		m.Subvolume, err = f.Subvolume(at)
	} else {
		m.Subvolume, err = f.Snapshot(m.of, at, kept)
	}
	if err == nil && m.source != nil {
		err = m.pin(fsid)
	}
	if err == nil && !kept {
		err = f.Limit(m.Subvolume.ID, m.Size)
	}
	if err == nil {
		err = write(f, at, m.record)
	}
	if err == nil {
		err = f.Move(at, m.area+"/"+m.ID)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", m.ID, err)
	}
	return func(u *facts) {
		e := &entry{record: m.record, root: kernel.Root{Subvolume: m.Subvolume, Parent: topLevel}}
		if m.source != nil {
			m.source.bound = m.bound
		}
		if kept {
			u.snapshots[m.ID] = e
			return
		}
		e.bound = m.Size
		u.volumes[m.ID] = e
	}, nil
}

// pin notes how much of what its source wrote a copy keeps. The kernel has just written it all out.
func (m *making) pin(fsid string) error {
	quotas, err := kernel.Quotas(fsid)
	if err != nil {
		return err
	}
	m.Pins = maps.Clone(m.source.Pins)
	if m.Pins == nil {
		m.Pins = map[uint64]int64{}
	}
	m.Pins[m.source.Subvolume.ID] = provision.RoundUp(max(quotas[m.source.Subvolume.ID].Taken, 1), unit)
	return nil
}

func write(f Filesystem, dir string, r record) error {
	text, err := r.text()
	if err != nil {
		return err
	}
	return f.Record(dir, text)
}
