package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// PoolWish is what a pool shall be. Only ever more comes of it: a pool is made and
// grows, and none is removed, none shrinks and no disk leaves one.
type PoolWish struct {
	// Pool that is meant. Its type says what may be asked beside it.
	Pool PoolRef
	// Disks by their names as pools that a volume group or a zpool takes: it is made of
	// them, or grows by them. Those of a zpool are its vdevs, one after the other.
	Disks []string
	// Zpool is how a zpool is made, and Search the nodes of disks (/dev/sda) that it may be
	// on already; zero for other pools.
	Zpool  Zpool
	Search []string
	// SizePercent of its volume group is what a thin pool has at least; 0 asks for none.
	SizePercent int
	// Extension of a thin pool that fills up.
	Extension Extension
}

// Extension extends a thin pool by so many percent of its data, or of its metadata, once
// so many percent of that are taken. The zero value extends nothing.
type Extension struct{ At, By int }

// Outcome is how a wish stands, for people.
type Outcome struct {
	Reason  Reason
	Message string
}

// Reason is why a wish stands as it does.
type Reason string

// How wishes stand.
const (
	// PoolMade, PoolGrown, PoolExtended and PoolImported say what was done just now.
	PoolMade     Reason = "Made"
	PoolGrown    Reason = "Grown"
	PoolExtended Reason = "Extended"
	PoolImported Reason = "Imported"
	// PoolAsAsked leaves nothing to do.
	PoolAsAsked Reason = "AsAsked"
	// PoolAwaitsDisks: there is no such pool, and nothing to make it of.
	PoolAwaitsDisks Reason = "AwaitsDisks"
	// PoolAbsent: there is no such pool, and none is to be made.
	PoolAbsent Reason = "Absent"
	// PoolForeign was made by others, and is not changed.
	PoolForeign Reason = "Foreign"
	// PoolDiffers was made by Berth otherwise than is asked now, and is not changed.
	PoolDiffers Reason = "Differs"
	// PoolTroubled has a problem, and is not changed while it has.
	PoolTroubled Reason = "Troubled"
	// PoolNoRoom: its volume group has no room for what is asked.
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
	// Ensure takes one step towards a wish, if there is one to take, and says how it
	// stands. A wish that is met starts no process. Only disks that are empty are taken, and
	// only pools that Ensure made are changed; a thin pool that others made is extended
	// where Extension asks for it. What has begun to change a pool is carried to its end
	// though the caller gives up.
	Ensure(ctx context.Context, w PoolWish) (Outcome, error)
}

// MaxDisks that one wish may name.
const MaxDisks = 1024

// Check returns ErrInvalid for a wish that can never be met.
func (w PoolWish) Check() error {
	if err := cmp.Or(checkPool(w.Pool.Name), w.Extension.check()); err != nil {
		return err
	}
	switch {
	case w.Pool.Type != TypeOf(w.Pool.Name):
		return fmt.Errorf("%w: %q names no pool of type %s", ErrInvalid, w.Pool.Name, w.Pool.Type)
	case w.SizePercent < 0 || w.SizePercent > 100:
		return fmt.Errorf("%w: a size of %d percent is not between 0 and 100", ErrInvalid, w.SizePercent)
	case w.Pool.Type != LVM && w.Pool.Type != ZFS && len(w.Disks) > 0:
		return fmt.Errorf("%w: a pool of type %s is not made of disks", ErrInvalid, w.Pool.Type)
	case w.Pool.Type != LVMThin && (w.SizePercent != 0 || w.Extension != Extension{}):
		return fmt.Errorf("%w: a pool of type %s has no size in percent, and does not fill up", ErrInvalid, w.Pool.Type)
	case w.Pool.Type != ZFS && (w.Zpool != Zpool{} || len(w.Search) > 0):
		return fmt.Errorf("%w: a pool of type %s is no zpool", ErrInvalid, w.Pool.Type)
	case w.Pool.Type == ZFS:
		return cmp.Or(w.checkDisks(), w.checkZpool())
	}
	return w.checkDisks()
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
