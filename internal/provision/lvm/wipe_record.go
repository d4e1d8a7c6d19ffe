package lvm

import (
	"context"

	"berth.dev/berth/internal/provision/wipe"
	"berth.dev/berth/internal/run"
)

// wiped records now and then how much of a remnant need not be wiped again.
func (p *Provisioner) wiped(ctx context.Context, name, id string, recorded int64) wipe.Progress {
	marks := wipe.Marks{Bytes: p.config.WipeRecord, Interval: wipe.MarkInterval}
	marks.From(recorded, p.config.Now())
	return func(done int64, lasts bool) error {
		if !lasts || !marks.Due(done, p.config.Now()) {
			return nil
		}
		err := p.carryOut(ctx, p.wipedChange(name, id, done))
		if err == nil {
			recorded = done
		}
		if err == nil || done < recorded || ctx.Err() != nil {
			return err // a record that says more than is done must not stay
		}
		// Without the record a restart wipes more than it must. To end here would wipe the same
		// again and again, and never free what the record lacks room for.
		_, err = p.remnant(name, id)
		return err
	}
}

func (p *Provisioner) wipedChange(name, id string, done int64) change {
	var before int64
	return change{
		group: name, id: id,
		plan: func(g *group, _ bool) (met bool, size int64, err error) {
			if met, err = g.planRemove(id); met || err != nil {
				return met, 0, err
			}
			before = g.wiping[id].wiped
			return before == done, 0, nil
		},
		command: func(int64) run.Command { return p.config.wipedCommand(name, id, before, done) },
		learn: func(g *group, _ int64) {
			if r := g.wiping[id]; r != nil {
				r.wiped = done
			}
		},
	}
}
