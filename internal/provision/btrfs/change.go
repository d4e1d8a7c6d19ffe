package btrfs

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/engine"
)

type (
	change = engine.Change[*facts]
	// effect changes an open filesystem, and returns a function that notes the change.
	effect func(f Filesystem) (learn func(*facts), err error)
)

// carryOut makes a change that is one effect. plan returns it; nil if the request is met.
func (p *store) carryOut(ctx context.Context, c change, plan func(u *facts) (effect, error)) error {
	c.Plan = p.planned(c, plan)
	return p.engine.CarryOut(ctx, c)
}

func (p *store) planned(c change, plan func(u *facts) (effect, error)) func(*facts, bool) ([]engine.Step[*facts], error) {
	return func(u *facts, _ bool) ([]engine.Step[*facts], error) {
		if u == nil {
			return nil, fmt.Errorf("%w: filesystem %s is not mounted", provision.ErrPoolMissing, c.Unit)
		}
		if err := p.namesakes(u.label); err != nil {
			return nil, err
		}
		do, err := plan(u)
		if do == nil || err != nil {
			return nil, err
		}
		return []engine.Step[*facts]{{Name: c.ID, Do: func(context.Context) (func(*facts), error) {
			f, err := p.config.Open(c.Unit, true)
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

// each calls functions until one fails.
func each(do ...func() error) error {
	for _, d := range do {
		if err := d(); err != nil {
			return err
		}
	}
	return nil
}

// making is a volume or snapshot that is made.
type making struct {
	record
	area string
	// of is the directory whose subvolume it is a copy of, and is that subvolume; empty for a blank
	// volume. source is the volume in that directory, nil for a snapshot.
	of     string
	is     kernel.Subvolume
	source *entry
	// bound of the source while the copy is made: all of the source may be overwritten after.
	bound int64
	// left is what an attempt that failed left over.
	left *entry
}

// build makes a volume or snapshot, elsewhere. It is there once it was moved to its place.
func (m making) build(f Filesystem, fsid string) (learn func(*facts), err error) {
	at, kept := makingArea+"/"+m.ID, m.area == snapshotsArea
	err = each(
		f.Mark,
		func() error { return m.clear(f, at) },
		func() error { return f.Make(m.area) },
		func() error { return f.Make(at) },
		func() error {
			if m.source == nil {
				return nil
			}
			return f.Limit(m.source.Subvolume.ID, m.bound)
		},
		func() error {
			if m.of == "" {
				m.Subvolume, err = f.Subvolume(at)
			} else {
				m.Subvolume, err = f.Snapshot(m.of, m.is, at, kept)
			}
			return err
		},
		func() error { return m.pin(fsid) },
		func() error {
			if kept {
				return nil
			}
			return each(func() error { return m.alone(f) }, func() error { return f.Limit(m.Subvolume.ID, m.Size) })
		},
		func() error { return m.record.write(f, at) },
		func() error { return f.Move(at, m.area+"/"+m.ID) },
		f.Commit,
	)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", m.ID, err)
	}
	return m.learn, nil
}

// alone returns an error if anything else counts for the limit of what is made: an administrator may
// have made a group of that number before.
func (m making) alone(f Filesystem) error {
	counted, err := f.Counted()
	if err != nil {
		return err
	}
	for _, id := range kernel.Members(counted, m.Subvolume.ID) {
		if id != m.Subvolume.ID {
			return fmt.Errorf("subvolume %d is in quota group 1/%d, which Berth needs: remove it from there (btrfs qgroup remove)", id, m.Subvolume.ID)
		}
	}
	return nil
}

func (m making) clear(f Filesystem, at string) error {
	if m.left == nil {
		return nil
	}
	return errors.Join(destroy(f, m.left), f.Forget(m.left.root.ID), f.Remove(at))
}

// pin notes how much of what its source wrote a copy keeps, as far as that is charged: what the source
// takes beyond its size is what earlier copies keep, and these are charged for it. The kernel has just
// written it all out.
func (m *making) pin(fsid string) error {
	if m.source == nil {
		return nil
	}
	taken, err := kernel.Taken(fsid, m.source.Subvolume.ID)
	if err != nil {
		return err
	}
	m.Pins[m.source.Subvolume.ID] = min(provision.RoundUp(max(taken, 1), unit), m.source.Size)
	return nil
}

func (m making) learn(u *facts) {
	e := &entry{record: m.record, root: kernel.Root{Subvolume: m.Subvolume, Parent: topLevel, Name: kernel.Data}}
	if m.source != nil {
		m.source.bound = m.bound
	}
	if m.area == snapshotsArea {
		u.snapshots[m.ID] = e
		return
	}
	e.bound = m.Size
	u.volumes[m.ID] = e
}
