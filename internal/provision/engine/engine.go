package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/signal"
)

// Backend has the functions of a backend that an Engine calls.
type Backend[U Unit] interface {
	// Discover finds out which units there are, as far as that is cheap. It reads the units at
	// once that can be read together. Refresh reads the rest.
	Discover(ctx context.Context) error
	// Loaded is called once, after all units were asked for the first time: a crash may have
	// left something to tidy.
	Loaded(ctx context.Context)
	// Refresh reads one unit for a caller that has its lock. It puts the result into the Book:
	// the facts about the unit, that the tools are silent, or that the unit is gone.
	Refresh(ctx context.Context, unit string)
	// LookAgain reads a unit after a plan or a step of a change failed. cleared says that
	// something went that may have been in the way of the step. The caller has the unit's
	// lock, unless changes of a unit run at the same time: then it has given up the lock.
	LookAgain(ctx context.Context, unit string) (cleared bool)
	// Fit returns why the steps of a change of an id must not be taken now; nil if they may be
	// taken. It is called under the lock of the Book. u is nil if there is no such unit.
	Fit(u U, id string, steps []Step[U]) error
	// Ended is called when a change of a unit has ended, well or not.
	Ended(ctx context.Context, unit string)
}

// Engine keeps the facts about the units of one backend, and changes the units.
type Engine[U Unit] struct {
	Book[U]
	// Changed is set after each change, and by the backend when it notices one by others.
	Changed signal.Signal
	// IDLocks orders the operations of each volume and snapshot, UnitLocks those of each unit.
	IDLocks, UnitLocks keyed.Locks[string]
	// Tasks under way.
	Tasks run.Tasks

	backend  Backend[U]
	noun     string
	now      func() time.Time
	together bool
	reports  keyed.Locks[string]
	first    sync.Once
	// readers counts those that read a unit or wait to. The lock of the Book guards it.
	readers map[string]int
}

// Config of an Engine.
type Config[U Unit] struct {
	Backend Backend[U]
	// Noun for a unit in messages: "zpool".
	Noun string
	// Together says that changes of one unit run at the same time. The unit is read only while
	// none runs, because an answer does not tell which changes it includes.
	Together bool
	Now      func() time.Time
}

// New returns an Engine that knows of no unit.
func New[U Unit](c Config[U]) *Engine[U] {
	return &Engine[U]{Changed: signal.New(), backend: c.Backend, noun: c.Noun, now: c.Now, together: c.Together, readers: map[string]int{}}
}

// LoadOnce reads all units, unless that was done before.
func (e *Engine[U]) LoadOnce(ctx context.Context) error {
	e.Lock()
	loaded := e.loaded
	e.Unlock()
	if loaded {
		return nil
	}
	return e.RefreshDue(ctx)
}

// RefreshDue reads the units that may have changed. Concurrent callers share one reading.
func (e *Engine[U]) RefreshDue(ctx context.Context) error {
	unlock, err := e.reports.Lock(ctx, "")
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.backend.Discover(ctx); err != nil {
		return err
	}
	e.RefreshEach(ctx, e.Due())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.Lock()
	e.loaded = true
	e.Unlock()
	e.first.Do(func() { e.backend.Loaded(ctx) })
	return nil
}

// RefreshEach reads units at the same time. A unit that is known and that a change has locked is
// left out: the change keeps the facts about the unit up to date. A unit that is being read is waited for:
// the reading may have begun before the unit became due.
func (e *Engine[U]) RefreshEach(ctx context.Context, units []string) {
	var readers sync.WaitGroup
	for _, name := range units {
		readers.Go(func() {
			unlock, err := e.lockToRead(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			if e.IsDue(name) { // no other reader was faster
				e.backend.Refresh(ctx, name)
			}
		})
	}
	readers.Wait()
}

// lockToRead waits while another reader has the unit. A unit that was never read is locked by readers alone. If a
// change has the unit, lockToRead fails.
func (e *Engine[U]) lockToRead(ctx context.Context, name string) (unlock func(), err error) {
	if wait, unlock, err := e.tryToRead(name); !wait {
		return unlock, err
	}
	free, err := e.UnitLocks.Lock(ctx, name)
	if err != nil {
		e.hasRead(name)
		return nil, err
	}
	return func() { free(); e.hasRead(name) }, nil
}

// tryToRead counts a reader of a unit, unless a change has the unit. If wait is true, the reader has yet to lock it.
func (e *Engine[U]) tryToRead(name string) (wait bool, unlock func(), err error) {
	e.Lock()
	defer e.Unlock()
	var none U
	u := e.Units()[name]
	if wait = e.readers[name] > 0 || u != none && u.account().Read.IsZero(); !wait {
		free, err := e.UnitLocks.TryLock(name)
		if err != nil {
			return false, nil, err
		}
		unlock = func() { free(); e.hasRead(name) }
	}
	e.readers[name]++
	return wait, unlock, nil
}

func (e *Engine[U]) hasRead(name string) {
	e.Lock()
	defer e.Unlock()
	if e.readers[name]--; e.readers[name] == 0 {
		delete(e.readers, name)
	}
}

// Locate calls find, and calls it once more after look if it did not find the id. Then it returns
// ErrNotFound, or ErrUnavailable if the id may be in a unit that was never read.
func (e *Engine[U]) Locate(ctx context.Context, id string, find func() (bool, error), look func(context.Context) error) error {
	for _, look := range []func(context.Context) error{e.LoadOnce, look} {
		if err := look(ctx); err != nil {
			return err
		}
		if ok, err := find(); ok {
			return err
		}
	}
	if name, ok := e.Unread(); ok {
		return fmt.Errorf("%w: %s may be in %s %s, which was never read", provision.ErrUnavailable, id, e.noun, name)
	}
	return fmt.Errorf("%w: %s", provision.ErrNotFound, id)
}
