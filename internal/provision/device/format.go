package device

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Format implements provision.Provisioner.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	unlock, err := p.volumes.Lock(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		return p.formatLocked(ctx, r)
	})
}

func (p *Provisioner) formatLocked(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	v, err := p.Get(ctx, r.ID) // with its partition
	if err != nil {
		return provision.Volume{}, err
	}
	if met, err := r.Met(v); met || err != nil {
		return v, err
	}
	if err := p.confirm(v); err != nil {
		return provision.Volume{}, err
	}
	if r.Makes() {
		if err := p.config.Mkfs(ctx, v, r.Filesystem, r.Options); err != nil {
			return provision.Volume{}, fmt.Errorf("making %s on volume %s: %w", r.Filesystem, v.ID, err)
		}
	}
	if err := p.record(ctx, v, status(r.Filesystem)); err != nil {
		return provision.Volume{}, fmt.Errorf("recording %s on volume %s: %w", r.Filesystem, v.ID, err)
	}
	d, err := p.state.find(r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	return d.volume(), nil
}

// confirm makes sure that the disk itself says that the volume is blank. That the partition is
// on this disk is proved when it is opened.
func (p *Provisioner) confirm(v provision.Volume) error {
	d, err := p.state.find(v.ID)
	if err != nil {
		return err
	}
	c, err := p.lookAt(d.Disk)
	if err != nil {
		return fmt.Errorf("%w: disk %s: %w", provision.ErrUnavailable, d.Name, err)
	}
	if c.kind != ours || c.problem != "" || c.record != d.content.record || c.record.status != blank || d.volume() != v {
		return fmt.Errorf("%w: partition %s is not blank volume %s", provision.ErrConflict, v.Device, v.ID)
	}
	return nil
}

// record writes down, with the volume, that it is formatted.
func (p *Provisioner) record(ctx context.Context, v provision.Volume, made status) error {
	unlock, err := p.pools.Lock(ctx, v.Pool.Name)
	if err != nil {
		return err
	}
	defer unlock()
	h, err := p.hold(v.Pool.Name)
	if err != nil {
		return err
	}
	defer h.release()
	r := h.content.record
	if h.content.kind != ours || h.content.problem != "" || r.id != v.ID || r.status != blank {
		return fmt.Errorf("%w: the disk changed meanwhile", provision.ErrConflict)
	}
	r.status = made
	return h.write(&r)
}
