package btrfs

import (
	"context"
	"errors"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/replica"
)

// Writable implements provision.Replicator.
func (r *Replicator) Writable(ctx context.Context, id string) (v provision.Volume, err error) {
	err = r.alter(ctx, id, func(c *copied) (replica.Record, error) {
		n, made, err := c.held.Head(r.config.Now())
		if err != nil || !made {
			return n, err
		}
		n.Since, err = r.makeHead(c)
		return n, err
	})
	if err != nil {
		return v, err
	}
	fsid, err := r.locate(ctx, id)
	if err != nil {
		return v, err
	}
	return r.view(fsid, id)
}

// makeHead makes the head anew out of the newest point, and returns the transaction that made it. Until
// the record says that the head counts, whatever is in its place is left over.
func (r *Replicator) makeHead(c *copied) (since uint64, err error) {
	tip, _ := c.held.Tip()
	point, of, err := c.place(tip.Point)
	if err != nil {
		return 0, err
	}
	if err := r.sweep(c.f, c.volume.ID, c.entry, c.tally.limit(c.entry)); err != nil {
		return 0, err
	}
	at := placeDir(c.dir, 0)
	m := making{record: c.entry.record}
	return since, each(
		func() error { return c.f.Make(at) },
		func() error { m.Subvolume, err = c.f.Snapshot(of, point.Subvolume, at, false); return err },
		func() error { return m.alone(c.f) },
		func() error { return c.f.Limit(m.Subvolume.ID, m.Size) },
		func() error { return m.record.write(c.f, c.dir) },
		func() error { return c.f.Move(at+"/"+kernel.Data, c.dir+"/"+kernel.Data) },
		func() error { return c.f.Remove(at) },
		func() error { return c.recount(m.Subvolume.ID) },
		c.f.Commit,
		func() error { since, _, err = c.f.Generation(c.dir); return err },
	)
}

// recount has the places of a copy that count for a head that went count for another one.
func (c *copied) recount(head uint64) error {
	counted, err := c.f.Counted()
	if err != nil {
		return err
	}
	for _, e := range c.held.places {
		for _, group := range counted[e.root.ID] {
			if group == head || e.root.ID == 0 {
				continue
			}
			if err := errors.Join(c.f.Count(e.root.ID, head, true), c.f.Count(e.root.ID, group, false)); err != nil {
				return err
			}
		}
	}
	return c.f.Forget(c.entry.Subvolume.ID)
}
