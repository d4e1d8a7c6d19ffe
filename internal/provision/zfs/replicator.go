package zfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// Replicator keeps copies of volumes in zpools. A point is a snapshot of the head, or what a stream
// made of another point.
type Replicator struct{ *keeper }

// keeper makes changes of copies, and knows which streams are under way.
type keeper struct {
	p *Provisioner

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

func newReplicator(p *Provisioner) *Replicator {
	return &Replicator{&keeper{p: p, receiving: map[string]bool{}, sending: map[string]map[lineage.Point]int{}}}
}

// Replicator implements provision.Replicating.
func (p *Provisioner) Replicator() provision.Replicator { return p.replicator }

// Abilities implements provision.Replicator.
func (r *Replicator) Abilities() provision.Abilities {
	return provision.Abilities{Format: "zfs-1", Incremental: true, Resumable: true, Checksummed: true}
}

// locked is a copy whose volume is locked.
type locked struct {
	zpool  string
	unlock func()
}

// locate returns the zpool with the copy of a volume. It returns ErrNotFound only if nothing of a copy is there.
func (r *keeper) locate(ctx context.Context, id string) (string, error) {
	name, err := r.p.locateVolume(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		for _, z := range r.p.engine.All() {
			err = cmp.Or(zpool.CopiesIn(z).Headless(id), err)
		}
	}
	return name, err
}

func (r *keeper) lock(ctx context.Context, id string) (l locked, err error) {
	if err := provision.CheckID(id); err != nil {
		return l, err
	}
	if l.zpool, err = r.locate(ctx, id); err != nil {
		return l, err
	}
	l.unlock, err = r.p.engine.IDLocks.Lock(ctx, id)
	return l, err
}

// carryOut makes one change of a copy, and gives its lock back.
func (r *keeper) carryOut(ctx context.Context, l locked, id string, plan planning) error {
	return r.p.engine.CarryOutLocked(ctx, l.unlock, zpool.Change{
		Unit: l.zpool, ID: id, Plan: r.p.planned(l.zpool, plan),
		Refused: func(z *zpool.Facts, failure error) error {
			if _, _, d, err := zpool.CopiesIn(z).Copy(id); err == nil {
				return zpool.NoRoom(d.Size())(z, failure)
			}
			return failure
		},
	})
}

// alter makes one change that only the record shows.
func (r *keeper) alter(ctx context.Context, id string, change zpool.Changing) error {
	l, err := r.lock(ctx, id)
	if err != nil {
		return err
	}
	return r.carryOut(ctx, l, id, func(p zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
		return zpool.CopyPlanner{Planner: p}.Alter(zpool.CopiesIn(z), id, false, change)
	})
}

// weigh is alter for a change that must know whether the head differs from the newest point. unused
// says that no pod may use the volume.
func (r *keeper) weigh(ctx context.Context, id string, unused bool, change func(c *zpool.Copy, dirty bool) (replica.Record, error)) error {
	l, err := r.lock(ctx, id)
	if err != nil {
		return err
	}
	dirty, err := r.dirty(ctx, l.zpool, id)
	if err != nil {
		l.unlock()
		return err
	}
	return r.carryOut(ctx, l, id, func(p zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
		return zpool.CopyPlanner{Planner: p}.Alter(zpool.CopiesIn(z), id, unused, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) { return change(c, dirty) })
	})
}

// State implements provision.Replicator.
func (r *Replicator) State(ctx context.Context, id string) (s provision.Replica, err error) {
	if err := provision.CheckID(id); err != nil {
		return s, err
	}
	name, err := r.locate(ctx, id)
	if err != nil {
		return s, err
	}
	unlock, err := r.p.engine.IDLocks.Share(ctx, id)
	if err != nil {
		return s, err
	}
	defer unlock()
	dirty, err := r.dirty(ctx, name, id)
	if err != nil {
		return s, err
	}
	err = zpool.NotFound(id)
	r.p.engine.With(name, func(z *zpool.Facts) {
		_, of, _, missing := zpool.CopiesIn(z).Copy(id)
		if err = missing; err != nil {
			return
		}
		record, token := zpool.CopiesIn(z).CopyState(id)
		s = record.View(z.View(of, r.p.config.Now()), dirty, token)
	})
	return s, err
}

// Mark implements provision.Replicator.
func (r *Replicator) Mark(ctx context.Context, id string, m provision.Mark) error {
	return r.alter(ctx, id, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) { return c.Mark(m, r.p.config.Now()) })
}

// Snapshot implements provision.Replicator.
func (r *Replicator) Snapshot(ctx context.Context, q provision.PointRequest) error {
	if err := q.Check(); err != nil {
		return err
	}
	l, err := r.lock(ctx, q.Volume)
	if err != nil {
		return err
	}
	if err := r.p.writeOut(ctx, q.Volume); err != nil {
		l.unlock()
		return err
	}
	return r.carryOut(ctx, l, q.Volume, func(p zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
		return zpool.CopyPlanner{Planner: p}.Point(zpool.CopiesIn(z), q)
	})
}

// Abort implements provision.Replicator.
func (r *Replicator) Abort(ctx context.Context, id string) error {
	if !r.begin(id) {
		return fmt.Errorf("%w: a stream of volume %s is being received", provision.ErrInUse, id)
	}
	defer r.end(id)
	return r.alter(ctx, id, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) {
		return c.Abort(r.p.config.Now()), nil
	})
}

// RollBack implements provision.Replicator.
func (r *Replicator) RollBack(ctx context.Context, id string, to lineage.Point) error {
	return r.weigh(ctx, id, true, func(c *zpool.Copy, dirty bool) (replica.Record, error) {
		return c.RollBack(to, dirty, r.p.config.Now())
	})
}

// Preserve implements provision.Replicator.
func (r *Replicator) Preserve(ctx context.Context, id string, common lineage.Point) error {
	return r.weigh(ctx, id, false, func(c *zpool.Copy, dirty bool) (replica.Record, error) {
		return c.Preserve(common, dirty, r.p.config.Now())
	})
}

// Forget implements provision.Replicator.
func (r *Replicator) Forget(ctx context.Context, id string, tip lineage.Point) error {
	return r.alter(ctx, id, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) {
		return c.Forget(tip, r.p.config.Now()), nil
	})
}

// Drop implements provision.Replicator.
func (r *Replicator) Drop(ctx context.Context, id string, points []lineage.Point) error {
	return r.alter(ctx, id, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return c.Drop(points, slices.Collect(maps.Keys(r.sending[id])), r.p.config.Now())
	})
}

// Hold implements provision.Replicator.
func (r *Replicator) Hold(ctx context.Context, id string, h ownership.Hold) error {
	return r.alter(ctx, id, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) { return c.Hold(h, r.p.config.Now()) })
}

// Release implements provision.Replicator.
func (r *Replicator) Release(ctx context.Context, id, owner string, p lineage.Point) error {
	return r.alter(ctx, id, func(c *zpool.Copy, _ provision.Volume) (replica.Record, error) {
		return c.Release(owner, p, r.p.config.Now(), true), nil
	})
}

// Writable implements provision.Replicator.
func (r *Replicator) Writable(ctx context.Context, id string) (v provision.Volume, err error) {
	l, err := r.lock(ctx, id)
	if err != nil {
		return v, err
	}
	props, err := r.own(ctx, l.zpool, id)
	if err != nil {
		l.unlock()
		return v, err
	}
	err = r.carryOut(ctx, l, id, func(p zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) {
		return zpool.CopyPlanner{Planner: p}.Head(zpool.CopiesIn(z), id, props)
	})
	if err != nil {
		return v, err
	}
	return r.p.Get(ctx, id)
}

// own returns the properties that were set on a head itself, if the head is to be made anew.
func (r *keeper) own(ctx context.Context, name, id string) (props []string, err error) {
	of, made := "", false
	err = zpool.NotFound(id)
	r.p.engine.With(name, func(z *zpool.Facts) {
		var c *zpool.Copy
		if c, of, _, err = zpool.CopiesIn(z).Copy(id); err == nil {
			_, made, err = c.Head(r.p.config.Now())
		}
	})
	if err != nil || !made {
		return nil, err
	}
	out, err := r.query(ctx, r.tool().OwnCommand(of))
	if err != nil {
		return nil, err
	}
	return zpool.Own(out)
}

// begin notes that a stream is received into a volume; false if one is already.
func (r *keeper) begin(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.receiving[id] {
		return false
	}
	r.receiving[id] = true
	return true
}

func (r *keeper) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.receiving, id)
}
