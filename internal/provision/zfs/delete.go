package zfs

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// Delete implements provision.Provisioner. A volume whose snapshots are needed moves
// to the trash, where it is no volume any more; any other is destroyed.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	holder, err := p.locateVolume(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		if other, taken := p.state.taken(id); taken {
			return fmt.Errorf("%w: dataset %s is not Berth's", provision.ErrConflict, other)
		}
		if holder, _ = p.state.find(id, unfinishedIn); holder == "" {
			return nil
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return p.carryOut(ctx, change{
		zpool: holder, id: id,
		plan: func(z *zpool) ([]step, error) { return p.planDelete(z, id) },
		// It is there, nothing depends on it and the zpool answers: what is left is that
		// somebody has it open.
		refused: func(_ *zpool, failure error) error {
			return fmt.Errorf("%w: volume %s: %w", provision.ErrInUse, id, failure)
		},
	})
}

func (p *Provisioner) planDelete(z *zpool, id string) ([]step, error) {
	name, d := z.volume(id)
	if d == nil {
		return p.discardSteps(z, id), nil
	}
	if err := z.answers(p.config.Now()); err != nil {
		return nil, err
	}
	if len(d.snapshots) == 0 {
		return []step{p.destroyStep(name, d)}, nil
	}
	away := p.moveStep(name, z.trashName(d.parent, id), trash)
	away.check = func() error { return p.unmounted(name, d) } // renaming would not mind
	return append(p.areaSteps(z, d.parent, trash), away), nil
}
