package device

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// Format implements provision.Provisioner.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	return engine.Formatter{
		IDs: &p.volumes, Tasks: &p.tasks, Get: p.Get, Confirm: p.confirm, Mkfs: p.config.Mkfs, Record: p.record,
		View: func(_ context.Context, v provision.Volume) (provision.Volume, error) {
			d, err := p.state.find(v.ID)
			if err != nil {
				return provision.Volume{}, err
			}
			return d.volume(), nil
		},
	}.Format(ctx, r)
}

// confirm makes sure that the disk itself says that the volume is blank. Mkfs proves that the
// partition is on this disk when it opens the partition.
func (c *changer) confirm(v provision.Volume) error {
	d, err := c.state.find(v.ID)
	if err != nil {
		return err
	}
	is, err := c.lookAt(d.Disk)
	if err != nil {
		return fmt.Errorf("%w: disk %s: %w", provision.ErrUnavailable, d.Name, err)
	}
	if is.kind != ours || is.problem != "" || is.record != d.content.record || is.record.status != blank || d.volume() != v {
		return fmt.Errorf("%w: partition %s is not blank volume %s", provision.ErrConflict, v.Content.Source, v.ID)
	}
	return nil
}

// record writes to the partition table that the volume is formatted.
func (c *changer) record(ctx context.Context, v provision.Volume, filesystem string) error {
	unlock, err := c.pools.Lock(ctx, v.Pool.Name)
	if err != nil {
		return err
	}
	defer unlock()
	h, err := c.hold(v.Pool.Name)
	if err != nil {
		return err
	}
	defer h.release()
	r := h.content.record
	if h.content.kind != ours || h.content.problem != "" || r.id != v.ID || r.status != blank {
		return fmt.Errorf("%w: the disk changed meanwhile", provision.ErrConflict)
	}
	r.status = status(filesystem)
	return h.write(&r)
}
