package zfs

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// Delete implements provision.Provisioner. It moves a volume that has snapshots to the
// trash, where it is no volume any more, and destroys any other volume.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	holder, err := p.locateVolume(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		if other, taken := p.state.taken(id); taken {
			return zpool.ConflictTaken(other)
		}
		if holder, _ = p.state.find(id, unfinishedIn); holder == "" {
			return nil
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return p.engine.CarryOut(ctx, zpool.Change{
		Unit: holder, ID: id,
		Plan: p.planned(holder, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) { return plan.Delete(z, id) }),
		// The volume is there, nothing depends on it, and ZFS was asked: the only cause left is
		// that a process has it open.
		Refused: func(_ *zpool.Facts, failure error) error {
			if errors.Is(failure, provision.ErrUnavailable) {
				return failure
			}
			return fmt.Errorf("%w: volume %s: %w", provision.ErrInUse, id, failure)
		},
	})
}
