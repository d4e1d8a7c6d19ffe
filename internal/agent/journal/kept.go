package journal

import (
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// Kept is what a node keeps about a volume. Of a copy it has Flushed, Taken, Given and Seen; the rest is beside the
// copy's data. The zero Kept knows nothing.
type Kept struct {
	// Volume is the id of the volume. Disk is how its device is found without the API server.
	Volume string
	Disk   shared.Disk
	// Promise, Opened, Closed and Flushed are as in ownership.Copy.
	Promise                 ownership.Promise
	Opened, Closed, Flushed lineage.Epoch
	Taken                   Taken
	// Given are the paths at which pods got the volume. Some of the pods may have been unpublished since.
	Given []Given `json:",omitempty"`
	// Seen has when the points of a copy were made here, or asked for, by the clock of this node.
	Seen []Seen `json:",omitempty"`
}

// Seen is a point whose data is from a time, or from before it.
type Seen struct {
	Point lineage.Point
	At    time.Time
}

// Saw notes a point, before it is there, and forgets those that held does not have.
func (k *Kept) Saw(p lineage.Point, now time.Time, held func(lineage.Point) bool) {
	k.Seen = slices.DeleteFunc(slices.Clone(k.Seen), func(s Seen) bool { return s.Point == p || !held(s.Point) })
	k.Seen = append(k.Seen, Seen{Point: p, At: now})
}

// Age returns how old the data of a point is at least; false if that is not known.
func (k *Kept) Age(p lineage.Point, now time.Time) (time.Duration, bool) {
	for _, s := range k.Seen {
		if s.Point == p {
			return max(0, now.Sub(s.At)), true
		}
	}
	return 0, false
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
	// Unclean: the writer before did not flush everything and unmount.
	Unclean bool `json:",omitempty"`
}

// Given says that a pod got the volume at a path, in an epoch and a boot. The kubelet keeps the path until the pod
// is unpublished.
type Given struct {
	Path  string
	Epoch lineage.Epoch
	Boot  string
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
