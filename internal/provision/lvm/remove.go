package lvm

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
)

// Delete implements provision.Provisioner. The room of a volume that must be wiped is free once
// Run has wiped it.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	if p.wiper.left(id) {
		return nil // deleted, and being wiped
	}
	return p.remove(ctx, id)
}

// remove removes a volume or a snapshot.
func (p *Provisioner) remove(ctx context.Context, id string) error {
	pool, err := p.locate(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		if p.wiper.left(id) {
			return nil
		}
		if other, taken := p.state.taken(id); taken {
			return fmt.Errorf("%w: logical volume %s/%s is not Berth's: rename it, or remove it yourself", provision.ErrConflict, other, id)
		}
		return nil
	}
	if err != nil {
		return err
	}
	name, thin := group.Split(pool)
	release, err := p.copier.running.halt(ctx, id)
	if err != nil {
		return err
	}
	defer p.nudge()
	defer release()
	if p.wiper.wipes(name, id) {
		return p.wiper.mark(ctx, name, id)
	}
	return p.remover.removeWithOthers(ctx, pool, change{
		group: name, id: id,
		plan: func(g *group.Facts, fresh bool) (*group.Step, error) { return p.planner().Remove(g, thin, id, fresh) },
	})
}
