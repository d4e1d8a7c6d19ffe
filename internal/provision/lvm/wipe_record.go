package lvm

import (
	"cmp"
	"context"
	"errors"
	"time"

	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/wipe"
)

var errNoRemnant = errors.New("it is not a deleted volume any more")

// progress returns a function that ends the wiping of a remnant once it is a volume again or must
// not be wiped any more, and records now and then how many bytes of it need not be wiped again.
func (p *wiper) progress(ctx context.Context, name, id string, recorded int64) wipe.Progress {
	marks := wipe.Marks{Bytes: p.config.WipeRecord, Interval: wipe.MarkInterval}
	marks.From(recorded, time.Now())
	return func(done int64, lasts bool) error {
		r, err := p.remnant(name, id)
		if r == nil {
			return cmp.Or(err, errNoRemnant)
		}
		if !lasts || !marks.Due(done, time.Now()) {
			return nil
		}
		err = p.carryOut(ctx, change{group: name, id: id, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Wiped(g, id, done) }})
		if done < r.Wiped {
			return err // a record that says more than lasts must not stay
		}
		// Without the record a restart wipes more than it must. Ending here would be worse: the
		// same bytes would be wiped again and again, and the room that the record lacks would
		// never be freed.
		return nil
	}
}
