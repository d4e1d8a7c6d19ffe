package simcloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// faults are what goes wrong, until a test says otherwise.
type faults struct {
	// fail is asked before and after each call.
	fail func(call, about string, done bool) error
	// lag is added to the age of listings.
	lag time.Duration
	// spoil is what the next operation meets.
	spoil Spoil
}

// Spoil is the fault of one operation.
type Spoil struct {
	// Err is what the operation says of the disk, or of all its disks if Disk is empty.
	Err  error
	Disk string
	// Happens: it has its effect all the same.
	Happens bool
	// Silent: it detaches nothing, and says that it has succeeded.
	Silent bool
}

func (s Spoil) meets(handle string) bool { return s.Err != nil && (s.Disk == "" || s.Disk == handle) }

// Tally counts what was asked of a cloud.
type Tally struct {
	// Calls by their names. Those that were throttled are counted, too.
	Calls map[string]int
	// Throttled are the changes that were refused because there were too many, and Early those of them that came
	// before the time that an earlier refusal had named.
	Throttled, Early int
	// Largest is the largest number of disks in an operation.
	Largest int
}

// Faults lets a test have things go wrong at a cloud.
type Faults struct{ c *Cloud }

// Faults of the cloud.
func (c *Cloud) Faults() Faults { return Faults{c} }

// Fail lets a function answer for the calls that fail: create, delete, expand, change, progress and attached. about is the
// disk or the machine. done says that the call has had its effect, and that its answer is lost.
func (f Faults) Fail(answer func(call, about string, done bool) error) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = answer
}

// Throttle refuses every change for a while.
func (f Faults) Throttle(lasts time.Duration) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes.until = c.c.Clock.Now().Add(lasts)
}

// Delay makes listings so much older than they are by the Config.
func (f Faults) Delay(lag time.Duration) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag = lag
}

// Spoil lets the next operation that begins fail.
func (f Faults) Spoil(s Spoil) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spoil = s
}

// Stray attaches a disk that no request of now asks for: one of long ago has arrived.
func (f Faults) Stray(name, handle string) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	now := c.c.Clock.Now()
	c.put(name, handle, now)
	c.machines[name].note(now)
	c.settle()
}

// Lose takes a disk off a machine, unasked.
func (f Faults) Lose(name, handle string) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	c.take(name, handle)
	c.machines[name].note(c.c.Clock.Now())
}

// Tally returns what was asked so far.
func (c *Cloud) Tally() Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally
	t.Calls = maps.Clone(t.Calls)
	return t
}

// change makes a change, if the cloud takes one now.
func (c *Cloud) change(ctx context.Context, call, about string, do func() error) error {
	return c.read(ctx, call, about, func() error {
		wait, early := c.changes.take(c.c.Clock.Now(), c.c.Requests, c.c.Window)
		if wait == 0 {
			return do()
		}
		c.tally.Throttled++
		if early {
			c.tally.Early++
		}
		return &shared.LaterError{After: wait, Throttled: true}
	})
}

// limiter refuses changes that are too many.
type limiter struct {
	// taken are the times of the changes in the window.
	taken []time.Time
	// until is when changes are taken again, and named the time that the last refusal has named.
	until, named time.Time
}

// take returns how long the next change must wait; zero takes it. early says that the caller was told to come later.
func (l *limiter) take(now time.Time, most int, window time.Duration) (wait time.Duration, early bool) {
	l.taken = slices.DeleteFunc(l.taken, func(at time.Time) bool { return !at.After(now.Add(-window)) })
	if !l.until.After(now) && most > 0 && len(l.taken) >= most {
		l.until = l.taken[0].Add(window)
	}
	if !l.until.After(now) {
		l.taken = append(l.taken, now)
		return 0, false
	}
	early = l.named.After(now)
	l.named = l.until
	return l.until.Sub(now), early
}

// read is a call, with the faults that it meets.
func (c *Cloud) read(ctx context.Context, call, about string, do func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	fail := c.fail
	c.mu.Unlock()
	if fail == nil {
		fail = func(string, string, bool) error { return nil }
	}
	if err := fail(call, about, false); err != nil {
		return provision.Unavailable(err)
	}
	if err := c.locked(call, do); err != nil {
		return err
	}
	if err := fail(call, about, true); err != nil {
		return provision.Unavailable(fmt.Errorf("the answer is lost: %w", err))
	}
	return nil
}

func (c *Cloud) locked(call string, do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	c.tally.Calls[call]++
	return do()
}
