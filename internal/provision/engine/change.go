package engine

import (
	"context"
	"slices"

	"berth.dev/berth/internal/run"
)

// Change changes a unit until its plan has no steps left.
type Change[U Unit] struct {
	// Unit that is changed.
	Unit string
	// ID of the volume or snapshot that the change is about.
	ID string
	// Beside, if set, returns the other ids that the change is about, by the facts in the Book.
	Beside func() Beside
	// Plan returns the steps that are left, or why the request cannot be met. fresh says that
	// the tools were asked just now. u is nil if there is no such unit. The engine calls Plan
	// under the lock of the Book, and again whenever the facts are not as expected.
	Plan func(u U, fresh bool) ([]Step[U], error)
	// Prepare, if set, makes the unit ready for a change that has steps left or cannot be planned.
	// The plan is made again after it. changed says that the unit was not ready.
	Prepare func(ctx context.Context) (changed bool, err error)
	// Refused, if set, classifies a failure that the facts do not explain. Without it the
	// failure is returned as it is.
	Refused func(u U, failure error) error
	// Undo, if set, plans the steps that remove the leftovers of a change that failed.
	Undo func(u U, fresh bool) ([]Step[U], error)
}

// Beside holds the ids that a change is about besides its own. The change alters Alters, too.
// Keeps must only exist until the change ends. Either may be empty.
type Beside struct{ Alters, Keeps string }

// Step is one effect on a unit.
type Step[U Unit] struct {
	// Name tells the step from others. If a step failed and comes first again after the unit
	// was read anew, the engine gives up.
	Name string
	// Do has the effect. It returns a function that puts the effect into the facts.
	Do func(ctx context.Context) (learn func(U), err error)
	// Takes is the room in bytes that the step takes for good, and Pool the pool that it is in.
	Takes int64
	Pool  string
}

// attempts bounds how often the engine tries the steps of a change: others may change the unit
// as fast.
const attempts = 4

// CarryOut makes changes of one id in one unit, one after the other, to their end. The changes go
// on if the caller's context ends.
func (e *Engine[U]) CarryOut(ctx context.Context, changes ...Change[U]) error {
	unlock, err := e.lockIDs(ctx, changes[0])
	if err != nil {
		return err
	}
	return e.CarryOutLocked(ctx, unlock, changes...)
}

// CarryOutLocked is CarryOut for a caller that has the locks of the ids. unlock gives them back.
func (e *Engine[U]) CarryOutLocked(ctx context.Context, unlock func(), changes ...Change[U]) error {
	unit := changes[0].Unit
	unlockUnit, err := e.lockUnit(ctx, unit)
	if err != nil {
		unlock()
		return err
	}
	_, err = run.Do(ctx, &e.Tasks, func(ctx context.Context) (none struct{}, _ error) {
		h := &Hold{unlock: unlockUnit}
		// A report that began earlier would leave the unit out: its lock was taken.
		defer e.Changed.Set()
		defer e.backend.Ended(ctx, unit)
		defer unlock()
		defer func() { h.unlock() }() // not the unlock of now: lookAgain may change it
		for _, c := range changes {
			if err := e.Make(ctx, c, h); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	return err
}

// lockIDs takes the locks of the ids that a change is about. The ids are certain only once they
// are locked: until then a snapshot may be replaced by one of another volume.
func (e *Engine[U]) lockIDs(ctx context.Context, c Change[U]) (unlock func(), err error) {
	if c.Beside == nil {
		return e.lockAll(ctx, c.ID, Beside{})
	}
	for {
		others := c.Beside()
		if unlock, err = e.lockAll(ctx, c.ID, others); err != nil || c.Beside() == others {
			return unlock, err
		}
		unlock()
	}
}

// lockAll takes locks in the order of the ids, as all callers do.
func (e *Engine[U]) lockAll(ctx context.Context, id string, b Beside) (unlock func(), err error) {
	ids := slices.DeleteFunc([]string{id, b.Alters, b.Keeps}, func(id string) bool { return id == "" })
	slices.Sort(ids)
	var unlocks []func()
	unlock = func() {
		for _, u := range unlocks {
			u()
		}
	}
	for _, each := range slices.Compact(ids) {
		take := e.IDLocks.Share
		if each == id || each == b.Alters {
			take = e.IDLocks.Lock
		}
		u, err := take(ctx, each)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, u)
	}
	return unlock, nil
}

// lockUnit takes a unit's lock for a change: alone, or with other changes.
func (e *Engine[U]) lockUnit(ctx context.Context, unit string) (unlock func(), err error) {
	if e.together {
		return e.UnitLocks.Share(ctx, unit)
	}
	return e.UnitLocks.Lock(ctx, unit)
}

// Hold is the lock of a unit while a change holds it. The zero value is for a caller that keeps
// the lock, of an engine whose changes do not run together.
type Hold struct{ unlock func() }

// Make makes a change for a caller that has the locks of the ids and, by h, of the unit. The
// caller sets Changed.
func (e *Engine[U]) Make(ctx context.Context, c Change[U], h *Hold) error {
	defer e.End(c)
	err := e.attempt(ctx, c, h)
	if err != nil && c.Undo != nil {
		e.undo(ctx, c)
	}
	return err
}

// attempt takes the steps of a change, and looks again whenever the plan or a step fails.
func (e *Engine[U]) attempt(ctx context.Context, c Change[U], h *Hold) error {
	_, outdated := e.Left(c, false) // an error may come from facts that are out of date
	if outdated != nil {
		e.lookAgain(ctx, c, h)
	}
	steps, _, err := e.ready(ctx, c, outdated != nil)
	var failed string
	var failure error
	cleared := false
	for range attempts {
		if len(steps) == 0 {
			return err // the facts explain the failure, or the request is met all the same
		}
		if failure != nil && !cleared && steps[0].Name == failed {
			break
		}
		if failed, failure = e.Take(ctx, c, steps); failure == nil {
			return nil
		}
		swept := e.lookAgain(ctx, c, h)
		steps, cleared, err = e.ready(ctx, c, true)
		cleared = cleared || swept
	}
	return e.refusal(c, failure)
}

// ready plans a change and has the unit prepared for it. changed says that it was not ready. No
// step may be taken in a unit that could not be prepared.
func (e *Engine[U]) ready(ctx context.Context, c Change[U], fresh bool) (steps []Step[U], changed bool, err error) {
	steps, err = e.Decide(c, fresh)
	if c.Prepare == nil || err == nil && len(steps) == 0 {
		return steps, false, err
	}
	if changed, err = c.Prepare(ctx); err != nil {
		return nil, changed, err
	}
	steps, err = e.Decide(c, fresh)
	return steps, changed, err
}

// lookAgain has the backend read a unit. If changes of a unit run at the same time, the change
// gives up the unit's lock for that: the backend reads a unit only while no change runs in it.
func (e *Engine[U]) lookAgain(ctx context.Context, c Change[U], h *Hold) (cleared bool) {
	if !e.together {
		return e.backend.LookAgain(ctx, c.Unit)
	}
	h.unlock()
	cleared = e.backend.LookAgain(ctx, c.Unit)
	if unlock, err := e.UnitLocks.Share(ctx, c.Unit); err == nil {
		h.unlock = unlock
	}
	return cleared
}

// Left returns the steps that are left of a change, or why they must not be taken.
func (e *Engine[U]) Left(c Change[U], fresh bool) (steps []Step[U], err error) {
	e.Book.With(c.Unit, func(u U) { steps, err = e.left(u, c, fresh) })
	return steps, err
}

func (e *Engine[U]) left(u U, c Change[U], fresh bool) ([]Step[U], error) {
	steps, err := c.Plan(u, fresh)
	if err == nil && len(steps) > 0 {
		err = e.backend.Fit(u, c.ID, steps)
	}
	if err != nil {
		return nil, err
	}
	return steps, nil
}

// Decide is Left, and notes the change as under way with the room that its steps take. End takes
// that note back.
func (e *Engine[U]) Decide(c Change[U], fresh bool) (steps []Step[U], err error) {
	var none U
	e.Book.With(c.Unit, func(u U) {
		if u != none {
			u.account().end(c.ID)
		}
		if steps, err = e.left(u, c, fresh); len(steps) == 0 || u == none {
			return
		}
		r := running{since: e.now()}
		for _, s := range steps {
			if s.Takes > 0 {
				r.pool, r.room = s.Pool, r.room+s.Takes
			}
		}
		u.account().begin(c.ID, r)
	})
	return steps, err
}

// Take takes steps until one fails. failed is the name of that step. The caller sets Changed.
func (e *Engine[U]) Take(ctx context.Context, c Change[U], steps []Step[U]) (failed string, failure error) {
	var none U
	for _, s := range steps {
		learn, err := s.Do(ctx)
		if err != nil {
			return s.Name, err
		}
		e.Book.With(c.Unit, func(u U) {
			if u != none { // it may have gone meanwhile
				learn(u)
				u.account().fulfil(c.ID, s.Takes)
			}
		})
	}
	return "", nil
}

// undo removes the leftovers of a change that failed. Leftovers that it cannot remove stay, and
// reports show them.
func (e *Engine[U]) undo(ctx context.Context, c Change[U]) {
	var none U
	var steps []Step[U]
	var err error
	e.Book.With(c.Unit, func(u U) {
		if u != none {
			steps, err = c.Undo(u, true)
		}
	})
	if err == nil {
		_, _ = e.Take(ctx, c, steps)
	}
}

// End notes that a change is not under way any more.
func (e *Engine[U]) End(c Change[U]) {
	var none U
	e.Book.With(c.Unit, func(u U) {
		if u != none {
			u.account().end(c.ID)
		}
	})
}

func (e *Engine[U]) refusal(c Change[U], failure error) error {
	var none U
	err := failure
	e.Book.With(c.Unit, func(u U) {
		if u != none && c.Refused != nil && u.account().Silent == nil {
			err = c.Refused(u, failure)
		}
	})
	return err
}

// Begin notes a change that is made without a plan, under an id that no other change uses.
func (e *Engine[U]) Begin(unit, id string) (ended func()) {
	note := func(f func(a *Account)) {
		var none U
		e.Book.With(unit, func(u U) {
			if u != none {
				f(u.account())
			}
		})
	}
	note(func(a *Account) { a.begin(id, running{since: e.now()}) })
	return func() { note(func(a *Account) { a.end(id) }) }
}
