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
	// throttled is until when every change is refused, and named the time that a refusal has named.
	throttled, named time.Time
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
	// Silent: it has no effect, and says that it has succeeded.
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

// Fail lets f answer for the calls that fail: create, delete, expand, change, progress and attached. about is the
// disk or the machine. done says that the call has had its effect, and that its answer is lost.
func (c *Cloud) Fail(f func(call, about string, done bool) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = f
}

// Throttle refuses every change for a while.
func (c *Cloud) Throttle(lasts time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.throttled = c.c.Clock.Now().Add(lasts)
}

// Delay makes listings so much older than they are by the Config.
func (c *Cloud) Delay(lag time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lag = lag
}

// Spoil lets the next operation that begins fail.
func (c *Cloud) Spoil(s Spoil) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spoil = s
}

// Stray attaches a disk that no request of now asks for: one of long ago has arrived.
func (c *Cloud) Stray(name, handle string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	now := c.c.Clock.Now()
	c.put(name, handle, now)
	c.machines[name].note(now)
	c.settle()
}

// Lose takes a disk off a machine, unasked.
func (c *Cloud) Lose(name, handle string) {
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
		if wait := c.wait(); wait > 0 {
			return &shared.LaterError{After: wait, Throttled: true}
		}
		c.taken = append(c.taken, c.c.Clock.Now())
		return do()
	})
}

// wait is how long the next change must wait.
func (c *Cloud) wait() time.Duration {
	now := c.c.Clock.Now()
	c.taken = slices.DeleteFunc(c.taken, func(at time.Time) bool { return !at.After(now.Add(-c.c.Window)) })
	if !c.throttled.After(now) && c.c.Requests > 0 && len(c.taken) >= c.c.Requests {
		c.throttled = c.taken[0].Add(c.c.Window)
	}
	if !c.throttled.After(now) {
		return 0
	}
	c.tally.Throttled++
	if c.named.After(now) {
		c.tally.Early++
	}
	c.named = c.throttled
	return c.throttled.Sub(now)
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
