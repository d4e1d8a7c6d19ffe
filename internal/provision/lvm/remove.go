package lvm

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Delete implements provision.Provisioner. What is to be wiped is free once Run has
// wiped it.
func (p *Provisioner) Delete(ctx context.Context, id string) error {
	if err := provision.CheckID(id); err != nil {
		return err
	}
	if p.state.left(id) {
		return nil // deleted, and being wiped
	}
	return p.remove(ctx, id)
}

// remove removes a volume or a snapshot.
func (p *Provisioner) remove(ctx context.Context, id string) error {
	pool, err := p.locate(ctx, id)
	if errors.Is(err, provision.ErrNotFound) {
		if p.state.left(id) {
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
	name, thin := split(pool)
	release, err := p.copying.halt(ctx, id)
	if err != nil {
		return err
	}
	defer p.nudge()
	defer release()
	if p.state.wipes(name, id) {
		return p.mark(ctx, name, id)
	}
	return p.removeWithOthers(ctx, pool, change{
		group: name, id: id, thin: thin, writes: makes(thin),
		plan:    func(g *group, fresh bool) (bool, int64, error) { return g.planDelete(id, fresh) },
		command: func(int64) run.Command { return p.config.removeCommand(name, id) },
		learn:   func(g *group, _ int64) { g.discard(id) },
	})
}
