package device

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Delete implements provision.Provisioner. The volume is gone when it returns; the
// disk is free once Run has wiped it.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	d, err := p.locate(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	unlock, err := p.lock(ctx, id, d.pool)
	if err != nil {
		return err
	}
	_, err = run.Do(ctx, &p.tasks, func(context.Context) (struct{}, error) {
		defer unlock()
		return struct{}{}, p.deleteLocked(d.pool, id)
	})
	return err
}

func (c *changer) deleteLocked(pool, id string) error {
	if _, err := c.state.find(id); err != nil {
		if errors.Is(err, provision.ErrNotFound) {
			return nil // deleted meanwhile, and perhaps being wiped
		}
		return err
	}
	h, err := c.hold(pool)
	if errors.Is(err, provision.ErrPoolMissing) {
		return fmt.Errorf("%w, and holds volume %s", err, id)
	}
	if err != nil {
		return err
	}
	defer h.release()
	is := h.content
	switch {
	case is.kind != ours || is.record.id != id || is.record.status == wiping:
		return nil // deleted meanwhile
	case is.problem != "":
		return fmt.Errorf("%w: disk %s with volume %s: %s", provision.ErrUnavailable, h.disk.Name, id, is.problem)
	}
	// The kernel refuses this while the partition is open. From here on no process can open
	// it. If the next step fails, the volume is still there, and its partition is made again
	// when the volume is asked for.
	if err := h.deactivate(); err != nil {
		return err
	}
	gone := is.record
	gone.status = wiping
	return h.write(&gone)
}
