package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// Config has the parts that an Owner works with.
type Config struct {
	// Node that the agent is for, and the id of the machine's present boot.
	Node, Boot string
	World      World
	// Medium is what the volumes' replicas are.
	Medium Medium
	// Locks are held by volume id, shared with the replica worker.
	Locks staging.Locks
	// Rules decide; ownership.NodeRules are the product's.
	Rules ownership.Node
	// Poke has a volume tended soon, and after a while if the delay is not zero.
	Poke func(volume string, delay time.Duration)
	// Background runs work that may take long, until the agent ends.
	Background func(work func(ctx context.Context))
	Log        logr.Logger
}

// Owner owns the volumes with epochs of one node.
type Owner struct {
	c Config

	memory
	silent silences
}

var _ staging.Owner = (*Owner)(nil)

// New makes an Owner.
func New(c Config) *Owner {
	return &Owner{c: c, memory: memory{hints: map[string]*hint{}, lapses: 1, running: map[*context.CancelCauseFunc]struct{}{}}}
}

const (
	// patience is for how long an epoch is kept for a kubelet whose Stage failed. One that asks later
	// gets a new epoch; the pod may also have ended, and another node may wait.
	patience = 30 * time.Second
	// decisions is how many decisions a call makes before it leaves the rest to the next one.
	decisions = 64
)

// NotNowError says that a volume cannot be used, or let go of, now, or at all.
type NotNowError struct {
	Volume string
	Why    ownership.Why
	// Refused: asking again does not help.
	Refused bool
	// Cause is an error on the way to the decision, nil if there was none.
	Cause error
	// tended is closed once the volume has been tended again; nil if that does not help.
	tended <-chan struct{}
}

var _ staging.Awaited = (*NotNowError)(nil)

// Changed implements staging.Awaited. Most changes that let a node take a volume have it tended: those of its record, and
// the end of an attach or of a stream. That a node answers again, or this node's lease is renewed, does not.
func (e *NotNowError) Changed() <-chan struct{} { return e.tended }

func (e *NotNowError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("volume %s: %s: %v", e.Volume, e.Why.Message(), e.Cause)
	}
	return fmt.Sprintf("volume %s: %s", e.Volume, e.Why.Message())
}

// Unwrap gives the error its class. That of the cause does not count: it may be final, and asking for the
// volume again is not.
func (e *NotNowError) Unwrap() error {
	switch {
	case e.Refused && e.Why.Reason == ownership.VolumeUnknown:
		return provision.ErrNotFound
	case e.Refused:
		return provision.ErrConflict
	}
	return provision.ErrUnavailable
}

// Prepare implements staging.Owner. It does nothing: another node may write, so a filesystem is made
// only once this node owns the volume.
func (o *Owner) Prepare(context.Context, string, func(context.Context) error) error { return nil }

// Fetch implements staging.Owner. It only has the volume attached: that goes on in the background, and
// Take says what is missing.
func (o *Owner) Fetch(_ context.Context, id string) error {
	(actor{o}).wants(id)
	o.c.Poke(id, 0)
	return nil
}

// Take implements staging.Owner.
func (o *Owner) Take(ctx context.Context, id string, use func(context.Context) error) error {
	(actor{o}).wants(id)
	tended := o.tended(id) // what changes during the decisions counts
	err := o.take(ctx, id, use)
	// A pod that lost the volume must end first, and the kubelet ends none while it stages the volume.
	if now := (*NotNowError)(nil); errors.As(err, &now) && !now.Refused && now.Why.Reason != ownership.NotOwner {
		now.tended = tended
	}
	return err
}

func (o *Owner) take(ctx context.Context, id string, use func(context.Context) error) error {
	before := &asking{idle: true}
	if !o.mayContinue(id) {
		// The rules give up an epoch that begins before the copy knows the record's: know it first.
		if _, err := o.follow(ctx, id, before); err != nil {
			return err
		}
	}
	return o.reach(ctx, id, &asking{wanted: true, use: use, silent: before.silent})
}

// Holds implements staging.Owner.
func (o *Owner) Holds(ctx context.Context, id, target string, use func(context.Context) error) error {
	return o.alone(ctx, id, func(ctx context.Context) error {
		if o.isFenced() {
			return fmt.Errorf("%w: volume %s: %w", provision.ErrUnavailable, id, errLapsed)
		}
		l := &look{id: id}
		if err := o.c.Medium.recall(ctx, o, l); err != nil {
			return err
		}
		if e := l.facts.Copy.Opened; !l.kept.InUse(o.c.Boot) || l.kept.Taken.Epoch != e || l.facts.Copy.GaveUp(e) {
			return &NotNowError{Volume: id, Why: ownership.Why{Reason: ownership.NotOwner}}
		}
		if target != "" {
			if err := (actor{o}).give(ctx, l, target); err != nil {
				return err
			}
		}
		return use(ctx)
	})
}

// Give implements staging.Owner.
func (o *Owner) Give(ctx context.Context, id string, off staging.Off) error {
	o.hinted(id, func(h *hint) { h.wanted = time.Time{} })
	if err := o.alone(ctx, id, func(ctx context.Context) error { return o.mayStop(ctx, id, off) }); err != nil {
		return err
	}
	a := &asking{unstaging: true, off: &off}
	if err := o.reach(ctx, id, a); err != nil {
		return err
	}
	if a.unmounted {
		return nil
	}
	// The volume was not taken here, and yet something may be at the path.
	return o.alone(ctx, id, off.Unmount)
}

// mayStop refuses to close an epoch that a pod still writes in: the rules close it before they unmount.
func (o *Owner) mayStop(ctx context.Context, id string, off staging.Off) error {
	l := &look{id: id}
	if err := o.c.Medium.recall(ctx, o, l); err != nil {
		return errors.Join(err, off.Unmount(ctx)) // the pod ends, and the volume is not given up
	}
	if c := &l.facts.Copy; !l.kept.InUse(o.c.Boot) || c.GaveUp(c.Opened) {
		return nil
	}
	own := 1 // the staging path
	if l.kept.Taken.Block {
		own = 0
	}
	paths, err := off.Left(ctx)
	if err == nil && len(paths) > own {
		return inUse(id, paths)
	}
	return nil // what Left cannot tell now, it must tell after the unmount
}

func inUse(id string, paths []string) error {
	return fmt.Errorf("%w: volume %s is still mounted at %q", provision.ErrInUse, id, paths)
}

// alone takes a step under the volume's lock. A lapse of the node ends it.
func (o *Owner) alone(ctx context.Context, id string, step func(context.Context) error) error {
	unlock, err := o.c.Locks.Lock(ctx, id)
	if err != nil {
		return fmt.Errorf("waiting for another operation on volume %s: %w", id, err)
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.mu.Lock()
	o.running[&cancel] = struct{}{}
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.running, &cancel)
	}()
	return step(ctx)
}

// errLapsed is the cause of the end of the actions that a lapse ends.
var errLapsed = errors.New("this node must stop its writers: its lease was not renewed")
