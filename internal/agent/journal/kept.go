package journal

import (
	"fmt"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// Kept is what a node keeps about a shared disk. The zero Kept knows nothing.
type Kept struct {
	// Volume is the id of the volume. Disk is how its device is found without the API server.
	Volume string
	Disk   shared.Disk
	// Promise, Opened, Closed and Flushed are as in ownership.Copy.
	Promise                 ownership.Promise
	Opened, Closed, Flushed lineage.Epoch
	Taken                   Taken
}

// Taken says that pods of this node may have the volume: it was mounted, or its device was given to
// a pod, in an epoch. It counts only in the boot that is named: nothing is mounted after another one.
type Taken struct {
	Epoch lineage.Epoch
	Boot  string
	// Block: pods get the device itself, and no mount shows it.
	Block bool
	// Content is the device.
	Content provision.Content
}

// Copy is the node's knowledge as the rules see it. An attachment holds no data.
func (k *Kept) Copy() ownership.Copy {
	return ownership.Copy{Promise: k.Promise, Opened: k.Opened, Closed: k.Closed, Flushed: k.Flushed}
}

// InUse says whether pods of this node may have the volume, in the given boot.
func (k *Kept) InUse(boot string) bool { return !k.Taken.Epoch.IsZero() && k.Taken.Boot == boot }

// GaveUp says whether the node gave up e, an epoch of its own: see ownership.Copy.
func (k *Kept) GaveUp(e lineage.Epoch) bool {
	c := k.Copy()
	return c.GaveUp(e)
}

// Grow replaces an epoch by a later one. Opened, Closed and Flushed never go back.
func Grow(now *lineage.Epoch, to lineage.Epoch) error {
	switch {
	case to == *now:
		return nil
	case to.Number <= now.Number:
		return fmt.Errorf("%w: epoch %v is not later than %v", provision.ErrConflict, to, *now)
	}
	*now = to
	return nil
}
