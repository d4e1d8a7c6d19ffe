package released

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// Config has the parts that a Wiper works with: all its effects.
type Config struct {
	Node    string
	Objects Objects
	Disks   shared.Disks
	Machine Machine
	Clock   clock.PassiveClock
	// Step is how many bytes are wiped between two looks at the disk. Marks are how many bytes are wiped between
	// two records of the progress; zero is the default of package wipe.
	Step, Marks int64
	Log         logr.Logger
}

// Wiper wipes the disks of LUNs for this node. Wipe is called for one LUN at a time.
type Wiper struct{ c Config }

// New makes a Wiper.
func New(c Config) *Wiper { return &Wiper{c} }

// steps is how many decisions one call makes: more than a wipe needs.
const steps = 32

// Wipe does what is to be done about a LUN on this node, and returns when that is over, or when it has to wait.
// after is when it is to be called again; zero is when the LUN changes. What went wrong is in the LUN, too.
func (w *Wiper) Wipe(ctx context.Context, name string) (after time.Duration, err error) {
	for range steps {
		l, a, err := w.look(ctx, name)
		if err == nil {
			if a.Verb == Rest {
				return 0, nil
			}
			w.c.Log.V(1).Info("wiping a disk", "lun", name, "verb", string(a.Verb), "reason", a.Reason, "message", a.Message)
			err = w.carryOut(ctx, l, a)
		}
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case apierrors.IsConflict(err), errors.Is(err, errOverruled):
			continue // the LUN has changed
		case err != nil:
			return again, errors.Join(err, w.tell(ctx, l, err))
		case a.Verb == Wait:
			return attaching, nil
		}
	}
	return again, nil
}

// look gathers the facts, the LUN first, and decides.
func (w *Wiper) look(ctx context.Context, name string) (*v1alpha1.LUN, Answer, error) {
	l, err := w.c.Objects.Read(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, next(&Facts{Node: w.c.Node}), nil
	case err != nil:
		return nil, Answer{}, fmt.Errorf("%w: reading LUN %s: %w", provision.ErrUnavailable, name, err)
	}
	f := &Facts{Node: w.c.Node, LUN: l}
	if l.Status.Wipe == nil || l.Status.Wipe.Node != w.c.Node {
		return l, next(f), nil // the disk is none of this node's business
	}
	if f.View, err = w.c.Disks.Look(ctx, diskOf(l)); err != nil {
		return l, Answer{}, err
	}
	return l, next(f), nil
}

func (w *Wiper) carryOut(ctx context.Context, l *v1alpha1.LUN, a Answer) error {
	d := diskOf(l)
	switch a.Verb {
	case Attach:
		return w.c.Disks.Attach(ctx, d)
	case Detach:
		return w.c.Disks.Detach(ctx, d)
	case Register:
		return w.c.Disks.Register(ctx, d, a.Key, shared.Idle)
	case Reserve:
		err := w.c.Disks.Reserve(ctx, d, a.Expect, a.Key)
		if errors.Is(err, provision.ErrConflict) { // another node was faster: ask again
			err = nil
		}
		return err
	case Erase:
		err := w.erase(ctx, l)
		if _, is := errors.AsType[*strangerError](err); is {
			return w.change(ctx, l, goesOn, func(n *v1alpha1.LUNWipe) {
				n.Outcome, n.Problem = v1alpha1.LUNWipeFailed, problem(w.c.Node, err.Error())
			})
		}
		return err
	case Record:
		return w.record(ctx, l, a.Next)
	}
	return nil
}

// record writes a wipe, with the version of the LUN that was read.
func (w *Wiper) record(ctx context.Context, l *v1alpha1.LUN, next *v1alpha1.LUNWipe) error {
	l = l.DeepCopy()
	l.Status.Wipe = next
	if err := w.c.Objects.Replace(ctx, l); err != nil {
		return fmt.Errorf("writing the status of LUN %s: %w", l.Name, err)
	}
	return nil
}

// errOverruled: this wipe is not this node's any more.
var errOverruled = errors.New("the wipe was taken from this node")

// change changes the wipe as it is now, if it still is this node's in the same epoch, and only if may allows it.
func (w *Wiper) change(ctx context.Context, l *v1alpha1.LUN, may func(now *v1alpha1.LUN) bool, change func(n *v1alpha1.LUNWipe)) error {
	for {
		now, err := w.c.Objects.Read(ctx, l.Name)
		switch {
		case apierrors.IsNotFound(err):
			return errOverruled
		case err != nil:
			return fmt.Errorf("%w: reading LUN %s: %w", provision.ErrUnavailable, l.Name, err)
		case !ordered(l, now) || !may(now):
			return errOverruled
		}
		next := now.Status.Wipe.DeepCopy()
		change(next)
		if err := w.record(ctx, now, next); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// ordered says whether a LUN still orders the wipe that it did, from the same node in the same epoch.
func ordered(then, now *v1alpha1.LUN) bool {
	a, b := then.Status.Wipe, now.Status.Wipe
	return b != nil && then.UID == now.UID && a.Node == b.Node && a.Epoch == b.Epoch
}

// goesOn says whether a wipe has not ended.
func goesOn(now *v1alpha1.LUN) bool {
	return now.Status.Wipe.Outcome == "" && now.DeletionTimestamp == nil
}

// tell writes what went wrong into the LUN, unless it is there already.
func (w *Wiper) tell(ctx context.Context, l *v1alpha1.LUN, what error) error {
	if l == nil {
		return nil
	}
	said := problem(w.c.Node, what.Error())
	if l.Status.Wipe.Problem == said {
		return nil
	}
	err := w.change(ctx, l, func(*v1alpha1.LUN) bool { return true }, func(n *v1alpha1.LUNWipe) { n.Problem = said })
	if errors.Is(err, errOverruled) {
		return nil
	}
	return err
}

// diskOf is the disk of a LUN. Reservations must outlive the target's loss of power: else a late writer could
// come after the wipe.
func diskOf(l *v1alpha1.LUN) shared.Disk {
	volume := ""
	if l.Status.Volume != nil {
		volume = l.Status.Volume.Name
	}
	return shared.Disk{Volume: volume, Handle: l.Spec.Disk.Handle, Identity: provision.Identity(l.Spec.Disk.Identity), Persistent: true}
}
