package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/api/v1alpha1"
)

// PoolWish describes a pool that shall exist. A wish only ever adds: a pool is made and
// grows. No pool is removed or shrunk, and no disk leaves one.
type PoolWish struct {
	// Pool that is wished for. Its type decides which of the other fields may be set.
	Pool PoolRef
	// Disks, by their names as pools, that the pool takes: it is made of them, or grows by them.
	// With a layout they are listed group by group.
	Disks []string
	// Layout of the pool on its disks. Search lists the device nodes of disks (/dev/sda) on which a
	// pool that Berth brings back may exist already.
	Layout Layout
	Search []string
	// SizePercent of its volume group is the least size of a thin pool; 0 asks to make none.
	SizePercent int
	// Extension says when a thin pool that fills up is extended.
	Extension Extension
}

// Extension extends a thin pool's data, or its metadata, by By percent of its size once At
// percent of it are used. The zero value extends nothing.
type Extension struct{ At, By int }

// Outcome says for people how far a wish is met.
type Outcome struct {
	Reason  Reason
	Message string
}

// Reason is the machine-readable part of an Outcome.
type Reason string

// The reasons of outcomes.
const (
	// PoolMade, PoolGrown, PoolExtended and PoolImported name the step that Ensure just took.
	PoolMade     = Reason(v1alpha1.PoolMade)
	PoolGrown    = Reason(v1alpha1.PoolGrown)
	PoolExtended = Reason(v1alpha1.PoolExtended)
	PoolImported = Reason(v1alpha1.PoolImported)
	// PoolAsAsked: the wish is met, and nothing is left to do.
	PoolAsAsked Reason = "AsAsked"
	// PoolAwaitsDisks: there is no such pool, and there are no disks to make it of.
	PoolAwaitsDisks Reason = "AwaitsDisks"
	// PoolAbsent: there is no such pool, and the wish does not ask to make one.
	PoolAbsent Reason = "Absent"
	// PoolForeign: Berth did not make the pool, and does not change it.
	PoolForeign Reason = "Foreign"
	// PoolDiffers: Berth made the pool in another form than the wish asks, and does not
	// change it.
	PoolDiffers Reason = "Differs"
	// PoolTroubled: the pool has a problem, and Berth does not change it until that is gone.
	PoolTroubled Reason = "Troubled"
	// PoolNoRoom: the thin pool's volume group has no room for the size that is asked.
	PoolNoRoom Reason = "NoRoom"
	// DisksRefused: a disk was not taken, since it turned out not to be empty.
	DisksRefused Reason = "DisksRefused"
)

// Done says whether something was changed.
func (r Reason) Done() bool {
	return r == PoolMade || r == PoolGrown || r == PoolExtended || r == PoolImported
}

// Met says whether nothing is left to do.
func (r Reason) Met() bool { return r == PoolAsAsked }

// Manager makes pools and lets them grow.
type Manager interface {
	// Ensure takes one step towards a wish, if there is one to take, and returns the
	// outcome. A wish that is met starts no process. Ensure takes only empty disks, and
	// changes only pools that it made itself, with one exception: it extends a thin pool
	// that Berth did not make where Extension asks for it. A change that has begun is
	// carried to its end even if the caller gives up.
	//
	// A pool of a type with the trait ByName is reported once Ensure was asked for it: a wish may
	// ask for that alone.
	Ensure(ctx context.Context, w PoolWish) (Outcome, error)
}

// MaxDisks is how many disks one wish may name.
const MaxDisks = 1024

// Check returns ErrInvalid for a wish that can never be met.
func (w PoolWish) Check() error {
	if err := cmp.Or(checkPool(w.Pool.Name), w.Extension.check()); err != nil {
		return err
	}
	switch t := TraitsOf(w.Pool.Type); {
	case w.Pool.Type != TypeOf(w.Pool.Name):
		return fmt.Errorf("%w: %q names no pool of type %s", ErrInvalid, w.Pool.Name, w.Pool.Type)
	case w.SizePercent < 0 || w.SizePercent > 100:
		return fmt.Errorf("%w: a size of %d percent is not between 0 and 100", ErrInvalid, w.SizePercent)
	case t.OfDisks == "" && len(w.Disks) > 0:
		return fmt.Errorf("%w: a pool of type %s is not made of disks", ErrInvalid, w.Pool.Type)
	case !t.FillsUp() && (w.SizePercent != 0 || w.Extension != Extension{}):
		return fmt.Errorf("%w: a pool of type %s has no size in percent, and does not fill up", ErrInvalid, w.Pool.Type)
	default:
		return cmp.Or(w.checkDisks(), w.checkName(t), w.checkSearch(t), w.checkLayout(t))
	}
}

func (w PoolWish) checkDisks() error {
	if len(w.Disks) > MaxDisks {
		return fmt.Errorf("%w: %d disks at once, at most %d", ErrInvalid, len(w.Disks), MaxDisks)
	}
	for _, d := range w.Disks {
		if checkPool(d) != nil || !strings.HasPrefix(d, DiskPrefix) {
			return fmt.Errorf("%w: %q is no disk", ErrInvalid, d)
		}
	}
	return nil
}

func (e Extension) check() error {
	if e != (Extension{}) && (e.At < 50 || e.At > 99 || e.By < 1 || e.By > 100) {
		return fmt.Errorf("%w: extending at %d percent by %d is not at 50 to 99 by 1 to 100", ErrInvalid, e.At, e.By)
	}
	return nil
}

// Ensure implements Manager.
func (m *Mux) Ensure(ctx context.Context, w PoolWish) (Outcome, error) {
	if err := w.Check(); err != nil {
		return Outcome{}, err
	}
	for _, member := range m.members {
		if manager, able := member.Provisioner.(Manager); able && slices.Contains(member.Types, w.Pool.Type) {
			return manager.Ensure(ctx, w)
		}
	}
	return Outcome{}, fmt.Errorf("%w: pools of type %s are not made here", ErrUnsupported, w.Pool.Type)
}
