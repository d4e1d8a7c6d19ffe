package word

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/ownership"
)

// Client is the agent's side. Each call is one connection, so neither process minds a restart of the other.
type Client struct{ Socket string }

// Open registers an epoch before its volume becomes writable. After an error the epoch must not be
// opened; a *keep.RefusedError has the reason. A warning is for people.
func (c Client) Open(ctx context.Context, e guard.Epoch) (warning string, err error) {
	a, err := c.ask(ctx, request{Verb: Open, Epoch: e})
	return a.Warning, err
}

// Close says that an epoch was closed, and its volume unmounted.
func (c Client) Close(ctx context.Context, e guard.Epoch) error {
	_, err := c.ask(ctx, request{Verb: Close, Epoch: e})
	return err
}

// Closed says that every epoch that this node has ever opened is closed.
func (c Client) Closed(ctx context.Context) error {
	_, err := c.ask(ctx, request{Verb: Closed})
	return err
}

// Status asks how the guard stands.
func (c Client) Status(ctx context.Context) (keep.Status, error) {
	a, err := c.ask(ctx, request{Verb: Status})
	return a.Status, err
}

func (c Client) ask(ctx context.Context, r request) (a answer, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return a, fmt.Errorf("reaching the guard of this node (is it enabled, and does its pod run?): %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return a, fmt.Errorf("asking the guard: %w", errors.Join(err, ctx.Err()))
	}
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return answer{}, fmt.Errorf("waiting for the guard's answer: %w", errors.Join(err, ctx.Err()))
	}
	switch {
	case a.Reason != "":
		return a, &keep.RefusedError{Reason: ownership.Reason(a.Reason), Message: a.Message}
	case a.Message != "":
		return a, fmt.Errorf("the guard: %s", a.Message)
	}
	return a, nil
}
