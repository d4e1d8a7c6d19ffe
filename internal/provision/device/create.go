package device

import (
	"context"
	"errors"
	"fmt"
	"io"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/device/gpt"
	"berth.dev/berth/internal/run"
)

// Create implements provision.Provisioner. Labels are not kept: a partition has a name
// and no more.
func (p *Provisioner) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	if r.Inline != (provision.Inline{}) {
		return provision.Volume{}, fmt.Errorf("%w: a disk is handed out whole to a claim, never to a volume in a pod's spec: name a PoolClass of another type", provision.ErrInvalid)
	}
	if r.Source != (provision.Source{}) {
		return provision.Volume{}, fmt.Errorf("%w: a whole disk cannot begin as a copy", provision.ErrUnsupported)
	}
	if err := checkName(r.ID); err != nil {
		return provision.Volume{}, err
	}
	if r.Pool.Type != provision.Device {
		return provision.Volume{}, fmt.Errorf("%w: a pool of type %s is no disk", provision.ErrPoolMissing, r.Pool.Type)
	}
	unlock, err := p.lock(ctx, r.ID, r.Pool.Name)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		return p.createLocked(ctx, r)
	})
}

// lock takes the locks of a volume and of a disk, in this order. Callers whose context
// ends leave the queue.
func (c *changer) lock(ctx context.Context, id, pool string) (unlock func(), err error) {
	unlockVolume, err := c.volumes.Lock(ctx, id)
	if err != nil {
		return nil, err
	}
	unlockPool, err := c.pools.Lock(ctx, pool)
	if err != nil {
		unlockVolume()
		return nil, err
	}
	return func() { unlockPool(); unlockVolume() }, nil
}

func (c *changer) createLocked(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	if err := c.refresh(ctx); err != nil {
		return provision.Volume{}, err
	}
	d, err := c.state.find(r.ID)
	switch {
	case errors.Is(err, provision.ErrNotFound):
		if err := c.admit(r); err != nil {
			return provision.Volume{}, err
		}
		if err := c.take(ctx, r); err != nil {
			return provision.Volume{}, err
		}
	case err != nil:
		return provision.Volume{}, err
	case d.ref() != r.Pool:
		return provision.Volume{}, fmt.Errorf("%w: volume %s exists on disk %s", provision.ErrConflict, r.ID, d.pool)
	case provision.RoundUp(r.Size, d.volume().Size) != d.volume().Size:
		return provision.Volume{}, fmt.Errorf("%w: volume %s exists with %d bytes, which %d is more than", provision.ErrConflict, r.ID, d.volume().Size, r.Size)
	case d.trouble() != "":
		return d.volume(), nil
	default:
		if usable, _ := c.usable(ctx, &d); usable { // the error is the context's, which does not end
			return d.volume(), nil
		}
		err = c.activateLocked(ctx, d.pool, r.ID) // it was begun, or the machine was restarted
		if err != nil && !c.ready(&d) {
			return provision.Volume{}, err
		}
	}
	d, err = c.state.find(r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	if v := d.volume(); v.Problem != "" || !c.ready(&d) {
		return provision.Volume{}, fmt.Errorf("%w: volume %s was made, and its partition %s is not there %s", provision.ErrUnavailable, v.ID, v.Content.Source, v.Problem)
	}
	return d.volume(), nil
}

// admit decides from the known facts whether the disk can be had. The error is ErrNoSpace
// for a disk that is taken or bears foreign data, and ErrUnavailable for one that cannot be
// read.
func (c *changer) admit(r provision.CreateRequest) (err error) {
	c.state.With(r.Pool.Name, func(d *disk) {
		switch {
		case d == nil || d.missing:
			err = fmt.Errorf("%w: disk %s is not there", provision.ErrPoolMissing, r.Pool.Name)
		case d.trouble() != "":
			err = fmt.Errorf("%w: disk %s: %s", provision.ErrUnavailable, d.pool, d.trouble())
		case d.Read.IsZero():
			err = fmt.Errorf("%w: disk %s was not read yet", provision.ErrUnavailable, d.pool)
		case d.closed() != "":
			err = fmt.Errorf("%w: disk %s (%s): %s", provision.ErrNoSpace, d.pool, d.Name, d.closed())
		default:
			f := d.figures()
			err = r.Limits.Admit(f, provision.RoundUp(r.Size, f.Unit))
		}
	})
	return err
}

// take makes a volume of an empty disk. It looks again whether the disk is empty, with the
// disk opened exclusively.
func (c *changer) take(ctx context.Context, r provision.CreateRequest) error {
	h, err := c.hold(r.Pool.Name)
	if errors.Is(err, provision.ErrInUse) {
		return fmt.Errorf("%w: an empty disk that others use: %w", provision.ErrUnavailable, err)
	}
	if err != nil {
		return err
	}
	defer h.release()
	if h.content.kind != empty || len(h.disk.Holders) > 0 || len(h.disk.Partitions) > 0 {
		return fmt.Errorf("%w: disk %s (%s) is not empty any more", provision.ErrNoSpace, r.Pool.Name, h.disk.Name)
	}
	var random [16]byte
	if _, err := io.ReadFull(c.config.Random, random[:]); err != nil {
		return fmt.Errorf("making an identity: %w", err)
	}
	made := record{id: r.ID, guid: gpt.Random(random)}
	made.first, made.last = h.disk.Whole()
	if err := h.write(&made); err != nil {
		return err
	}
	return h.activate(ctx, made)
}

// Expand implements provision.Provisioner: a volume is as large as its disk already.
func (p *Provisioner) Expand(ctx context.Context, r provision.ExpandRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	v, err := p.Get(ctx, r.ID)
	if err != nil || r.Size <= v.Size {
		return v, err
	}
	return provision.Volume{}, fmt.Errorf("%w: volume %s is a whole disk of %d bytes and cannot grow to %d", provision.ErrNoSpace, v.ID, v.Size, r.Size)
}
