package lvm

import (
	"context"
	"time"

	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/wipe"
)

// wiped returns a function that records now and then how many bytes of a remnant need not be
// wiped again.
func (p *wiper) wiped(ctx context.Context, name, id string, recorded int64) wipe.Progress {
	marks := wipe.Marks{Bytes: p.config.WipeRecord, Interval: wipe.MarkInterval}
	marks.From(recorded, time.Now())
	return func(done int64, lasts bool) error {
		if !lasts || !marks.Due(done, time.Now()) {
			return nil
		}
		err := p.carryOut(ctx, change{group: name, id: id, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Wiped(g, id, done) }})
		switch {
		case err == nil:
			recorded = done
			return nil
		case done < recorded: // the disk ignored a write, and the record says more than lasts
			p.doubt(name, id)
			return err
		}
		// Without the record a restart wipes more than it must. Ending here would be worse: the
		// same bytes would be wiped again and again, and the room that the record lacks would
		// never be freed.
		_, err = p.remnant(name, id)
		return err
	}
}

// doubt notes that the recorded progress of a remnant is not to be believed.
func (p *wiper) doubt(name, id string) {
	p.engine.With(name, func(g *group.Facts) {
		if g != nil && g.Wiping[id] != nil {
			g.Wiping[id].Doubted = true
		}
	})
}
