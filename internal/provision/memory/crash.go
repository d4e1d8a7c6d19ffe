package memory

import (
	"context"
	"errors"
	"fmt"
)

// ErrCrash is what a process sees of its own end.
var ErrCrash = errors.New("the process ends here")

// Crash is a Disturbance that ends a process at its effect number At, counting
// from 1: before the effect happens, or after it happened and before anybody
// hears of it, which are two numbers. A process that is dead has no more effects.
// It is for one goroutine.
type Crash struct {
	// At is the effect, 0 for none.
	At int
	// Seen effects so far.
	Seen int
	// Dead is set when the process has ended; whoever starts a new one clears it.
	Dead bool
	// Effects by name.
	Effects []string
}

var _ Disturbance = (*Crash)(nil)

// Effect is one effect of another kind than the provisioner's. If it fails the
// effect does not happen, or nobody hears of it.
func (c *Crash) Effect(name string) error {
	if c.Dead {
		return ErrCrash
	}
	c.Effects = append(c.Effects, name)
	c.Seen++
	if c.Dead = c.Seen == c.At; c.Dead {
		return ErrCrash
	}
	return nil
}

// Around does what has an effect, with a moment to crash on either side.
func (c *Crash) Around(name string, do func() error) error {
	if err := c.Effect("before " + name); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return c.Effect("after " + name)
}

// Before implements Disturbance.
func (c *Crash) Before(_ context.Context, op Operation, _ string) error {
	return c.operation("before", op)
}

// After implements Disturbance.
func (c *Crash) After(_ context.Context, op Operation, _ string) error {
	return c.operation("after", op)
}

func (c *Crash) operation(when string, op Operation) error {
	if op == Get || op == Report {
		return nil // reading has no effect
	}
	return c.Effect(fmt.Sprintf("%s %s", when, op))
}
