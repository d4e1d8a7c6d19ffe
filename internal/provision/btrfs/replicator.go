package btrfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// Replicator keeps copies of volumes in filesystems of btrfs. A point is a read-only snapshot of the
// head, or what a stream made of another point.
type Replicator struct {
	*store

	mu sync.Mutex
	// receiving are the volumes that a stream is received into, and sending the points that streams
	// read, with how many.
	receiving map[string]bool
	sending   map[string]map[lineage.Point]int
}

var (
	_ provision.Replicator  = (*Replicator)(nil)
	_ provision.Replicating = (*Provisioner)(nil)
)

func newReplicator(s *store) *Replicator {
	return &Replicator{store: s, receiving: map[string]bool{}, sending: map[string]map[lineage.Point]int{}}
}

// Replicator implements provision.Replicating.
func (p *Provisioner) Replicator() provision.Replicator { return p.replicator }

// Abilities implements provision.Replicator.
func (r *Replicator) Abilities() provision.Abilities {
	return provision.Abilities{Format: "btrfs-1", Incremental: true, Checksummed: true}
}

// copied is a copy when a change of it begins.
type copied struct {
	f         Filesystem
	fsid, dir string
	entry     *entry
	held      *held
	volume    provision.Volume
	tally     tally
	// admit says whether the pool has room for so many bytes more.
	admit func(l provision.Limits, bytes int64) error
}

// alter makes one change of a copy. do makes new data, and returns the record that names it.
func (r *Replicator) alter(ctx context.Context, id string, do func(c *copied) (replica.Record, error)) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	fsid, err := r.locate(ctx, id)
	if err != nil {
		return err
	}
	return r.carryOut(ctx, change{Unit: fsid, ID: id}, func(u *facts) (effect, error) {
		v, err := u.volume(id)
		if err != nil {
			return nil, err
		}
		now := r.config.Now()
		c := &copied{
			fsid: fsid, dir: volumesArea + "/" + id, entry: v, held: v.held, volume: u.view(v), tally: u.tally(),
			admit: func(l provision.Limits, bytes int64) error {
				return errors.Join(u.usable(now), l.Admit(u.pool(now), bytes))
			},
		}
		if c.held == nil {
			c.held = &held{}
		}
		if c.held.damage != nil {
			return nil, c.held.damage
		}
		return func(f Filesystem) (func(*facts), error) {
			c.f = f
			err := c.change(do)
			r.refreshOf(context.WithoutCancel(ctx), fsid, id)
			return func(*facts) {}, err
		}, nil
	})
}

// change carries a change out: new data first, and then the record. What the record does not name any
// more is tidied up later.
func (c *copied) change(do func(c *copied) (replica.Record, error)) error {
	if err := c.fresh(); err != nil {
		return err
	}
	n, err := do(c)
	if err != nil || !n.Exists {
		return err
	}
	return c.put(n)
}

// fresh returns an error if the record is not the one that the facts have: a change by older facts
// would take a promise back.
func (c *copied) fresh() error {
	text, err := c.f.Copy(c.dir)
	if err != nil {
		return err
	}
	now, err := replica.Decode(text)
	if err == nil && !reflect.DeepEqual(now, c.held.Record) {
		err = fmt.Errorf("%w: the record of the copy of volume %s was changed meanwhile", provision.ErrUnavailable, c.volume.ID)
	}
	return err
}

// put writes a record, after everything that it names.
func (c *copied) put(n replica.Record) error {
	if reflect.DeepEqual(n, c.held.Record) {
		return nil
	}
	text, err := n.Encode()
	if err != nil {
		return err
	}
	return each(c.f.Commit, func() error { return c.f.RecordCopy(c.dir, text) }, c.f.Commit)
}

// changed says whether a head that counts differs from the newest point. What tenants have in memory
// does not show before it is written out.
func (c *copied) changed() (bool, error) {
	if !c.held.Live || c.entry.root.ID == 0 {
		return false, nil
	}
	tip, ok := c.held.Tip()
	if !ok {
		return c.held.Unpointed(c.volume), nil
	}
	point, dir, err := c.place(tip.Point)
	if err == nil {
		err = c.f.Sync()
	}
	if err != nil {
		return false, err
	}
	head, err := c.generation(c.dir, c.entry)
	if err != nil {
		return false, err
	}
	then, err := c.generation(dir, point)
	return head > max(then, c.held.Since), err
}

// generation returns the transaction that last changed the subvolume of an entry.
func (c *copied) generation(dir string, e *entry) (uint64, error) {
	generation, is, err := c.f.Generation(dir)
	if err == nil && is != e.Subvolume {
		err = fmt.Errorf("%w: in place of subvolume %d of volume %s there is %d", provision.ErrConflict, e.Subvolume.ID, c.volume.ID, is.ID)
	}
	return generation, err
}

// place returns a point of the copy with its data.
func (c *copied) place(p lineage.Point) (*entry, string, error) {
	number, ok := c.held.Record.Place(p)
	e := c.held.places[number]
	if !ok || e == nil {
		return nil, "", fmt.Errorf("%w: point %v of volume %s", provision.ErrNotFound, p, c.volume.ID)
	}
	return e, placeDir(c.dir, number), e.sound()
}

// State implements provision.Replicator.
func (r *Replicator) State(ctx context.Context, id string) (s provision.Replica, err error) {
	if err := provision.CheckID(id); err != nil {
		return s, err
	}
	fsid, err := r.locate(ctx, id)
	if err != nil {
		return s, err
	}
	unlock, err := r.engine.IDLocks.Share(ctx, id)
	if err != nil {
		return s, err
	}
	defer unlock()
	c := &copied{fsid: fsid, dir: volumesArea + "/" + id, held: &held{}}
	err = fmt.Errorf("%w: %s", provision.ErrNotFound, id)
	r.engine.With(fsid, func(u *facts) {
		if u == nil || u.volumes[id] == nil {
			return
		}
		if c.entry, err = u.volume(id); err == nil {
			c.volume = u.view(c.entry)
		}
	})
	if err != nil {
		return s, err
	}
	if c.entry.held == nil {
		return c.held.View(c.volume, false, ""), nil
	}
	if c.held = c.entry.held; c.held.damage != nil {
		return s, c.held.damage
	}
	if c.f, err = r.config.Open(fsid, false); err != nil {
		return s, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	defer c.f.Close()
	dirty := false
	if err = c.fresh(); err == nil {
		dirty, err = c.changed()
	}
	if err != nil {
		return s, provision.Unavailable(err)
	}
	return c.held.View(c.volume, dirty, ""), nil
}

// Mark implements provision.Replicator.
func (r *Replicator) Mark(ctx context.Context, id string, m provision.Mark) error {
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) { return c.held.Mark(m, r.config.Now()) })
}

// Snapshot implements provision.Replicator.
func (r *Replicator) Snapshot(ctx context.Context, q provision.PointRequest) error {
	if err := q.Check(); err != nil {
		return err
	}
	return r.alter(ctx, q.Volume, func(c *copied) (replica.Record, error) {
		number := c.held.Free(c.held.numbers())
		n, met, err := c.held.Snapshot(q, number, r.config.Now())
		if met || err != nil {
			return n, err
		}
		if err := c.entry.sound(); err != nil {
			return n, err
		}
		m := making{record: record{ID: fmt.Sprint(number), Size: c.entry.Size, Volume: q.Volume, Taken: r.config.Now().UTC().Truncate(1e9)}}
		if err := c.admit(q.Limits, m.copies(c.entry, volumesArea, c.tally)); err != nil {
			return n, err
		}
		at := placeDir(c.dir, number)
		return n, each(
			c.f.Mark,
			func() error { return c.f.Make(at) },
			func() error { return c.f.Limit(c.entry.Subvolume.ID, m.bound) },
			func() error {
				m.Subvolume, err = c.f.Snapshot(c.dir, c.entry.Subvolume, at, true)
				return err
			},
			func() error { return m.pin(c.fsid) },
			func() error { return m.record.write(c.f, at) },
		)
	})
}

// Abort implements provision.Replicator.
func (r *Replicator) Abort(ctx context.Context, id string) error {
	if !r.begin(id) {
		return fmt.Errorf("%w: a stream of volume %s is being received", provision.ErrInUse, id)
	}
	defer r.end(id)
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) { return c.held.Abort(r.config.Now()), nil })
}

// RollBack implements provision.Replicator.
func (r *Replicator) RollBack(ctx context.Context, id string, to lineage.Point) error {
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) {
		dirty, err := c.changed()
		if err != nil {
			return c.held.Record, err
		}
		n, err := c.held.RollBack(to, dirty, r.config.Now())
		if err == nil {
			err = unused(c.f, c.entry.root.ID, id, "/"+c.dir)
		}
		return n, err
	})
}

// Preserve implements provision.Replicator.
func (r *Replicator) Preserve(ctx context.Context, id string, common lineage.Point) error {
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) {
		dirty, err := c.changed()
		if err != nil {
			return c.held.Record, err
		}
		return c.held.Preserve(common, dirty, r.config.Now())
	})
}

// Forget implements provision.Replicator.
func (r *Replicator) Forget(ctx context.Context, id string, tip lineage.Point) error {
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) { return c.held.Forget(tip, r.config.Now()), nil })
}

// Drop implements provision.Replicator.
func (r *Replicator) Drop(ctx context.Context, id string, points []lineage.Point) error {
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return c.held.Drop(points, slices.Collect(maps.Keys(r.sending[id])), r.config.Now())
	})
}

// Hold implements provision.Replicator.
func (r *Replicator) Hold(ctx context.Context, id string, h ownership.Hold) error {
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) { return c.held.Hold(h, r.config.Now()) })
}

// Release implements provision.Replicator.
func (r *Replicator) Release(ctx context.Context, id, owner string, p lineage.Point) error {
	return r.alter(ctx, id, func(c *copied) (replica.Record, error) {
		return c.held.Release(owner, p, r.config.Now(), true), nil
	})
}

// begin notes that a stream is received into a volume; false if one is already.
func (r *Replicator) begin(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.receiving[id] {
		return false
	}
	r.receiving[id] = true
	return true
}

func (r *Replicator) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.receiving, id)
}
