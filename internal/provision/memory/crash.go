package memory

import (
	"context"
	"errors"
	"fmt"
)

// ErrCrash is the error of the effect at which the process ends, and of all later ones.
var ErrCrash = errors.New("the process ends here")

// Crash is a Disturbance that ends a process at number At of its effects, counting
// from 1. Each effect has two numbers: one just before it happens, and one after it
// happened and before its caller has the result. A process that is dead has no more
// effects. Only one goroutine may use a Crash.
type Crash struct {
	// At is the number at which the process ends, 0 for never.
	At int
	// Seen counts the numbers so far.
	Seen int
	// Dead is set when the process has ended. Code that starts a new process clears it.
	Dead bool
	// Effects are the names of these numbers.
	Effects []string
}

var _ Disturbance = (*Crash)(nil)

// Effect counts an effect that is not the provisioner's. If it fails, the effect does
// not happen, or its result is lost.
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

// Around calls do, with a possible crash before and after it.
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
