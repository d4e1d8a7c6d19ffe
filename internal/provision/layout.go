package provision

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Layout says how a pool lies on its disks: in groups of disks (vdevs), each of which keeps its
// own redundancy. It is zero for pools of a type without layouts.
type Layout struct {
	// Redundancy of every group.
	Redundancy Redundancy
	// Width is how many disks a group has. The pool takes whole groups only.
	Width int
	// Ashift is the binary logarithm of the smallest write in bytes.
	Ashift int
}

// Redundancy keeps the data of a group of disks when disks fail.
type Redundancy string

// The redundancies of groups.
const (
	Stripe Redundancy = "Stripe"
	Mirror Redundancy = "Mirror"
	RaidZ1 Redundancy = "RaidZ1"
	RaidZ2 Redundancy = "RaidZ2"
)

// Layouts bounds the layouts of a type's pools.
type Layouts struct {
	// Widths are how many disks a group may have.
	Widths map[Redundancy]Span
	Ashift Span
	// LeastDisk is the smallest disk of a group, and Differ how much its disks may differ, in bytes.
	LeastDisk, Differ int64
}

// Span is a range of whole numbers that includes both ends.
type Span struct{ Least, Most int }

func (s Span) has(n int) bool { return s.Least <= n && n <= s.Most }

// check returns ErrInvalid for a layout that no pool can have.
func (b Layouts) check(l Layout) error {
	if width, ok := b.Widths[l.Redundancy]; !ok || !width.has(l.Width) {
		return fmt.Errorf("%w: a vdev of layout %q does not have %d disks", ErrInvalid, l.Redundancy, l.Width)
	}
	if !b.Ashift.has(l.Ashift) {
		return fmt.Errorf("%w: an ashift of %d is not between %d and %d", ErrInvalid, l.Ashift, b.Ashift.Least, b.Ashift.Most)
	}
	return nil
}

// CheckLayout returns ErrInvalid for a layout that no pool of the type can have.
func (t Traits) CheckLayout(l Layout) error {
	if t.Layouts != nil {
		return t.Layouts.check(l)
	}
	if l != (Layout{}) {
		return fmt.Errorf("%w: a pool of type %s has no layout", ErrInvalid, t.Type)
	}
	return nil
}

var diskNode = regexp.MustCompile(`^/dev/[A-Za-z0-9_!-]+$`)

// checkLayout is the part of Check about the disks of a pool with a layout.
func (w PoolWish) checkLayout(t Traits) error {
	if err := t.CheckLayout(w.Layout); err != nil || t.Layouts == nil {
		return err
	}
	if len(w.Disks)%w.Layout.Width != 0 {
		return fmt.Errorf("%w: %d disks are no whole vdevs of %d", ErrInvalid, len(w.Disks), w.Layout.Width)
	}
	for vdev := range slices.Chunk(w.Disks, w.Layout.Width) {
		if sorted := slices.Sorted(slices.Values(vdev)); len(slices.Compact(sorted)) != len(vdev) {
			return fmt.Errorf("%w: a vdev of %v has a disk twice", ErrInvalid, vdev)
		}
	}
	return nil
}

// checkSearch is the part of Check about the nodes on which a pool is searched for.
func (w PoolWish) checkSearch(t Traits) error {
	if !t.Brought && len(w.Search) > 0 {
		return fmt.Errorf("%w: Berth does not search for a pool of type %s", ErrInvalid, t.Type)
	}
	if i := slices.IndexFunc(w.Search, func(node string) bool { return !diskNode.MatchString(node) }); i >= 0 || len(w.Search) > MaxDisks {
		return fmt.Errorf("%w: a pool is searched for on at most %d disks: %q", ErrInvalid, MaxDisks, w.Search[max(i, 0)])
	}
	return nil
}

// checkName is the part of Check about the name that a pool is made with.
func (w PoolWish) checkName(t Traits) error {
	name := strings.TrimPrefix(w.Pool.Name, t.Prefix)
	if t.Names != nil && !t.Names.MatchString(name) || t.Reserved != nil && t.Reserved.MatchString(name) {
		return fmt.Errorf("%w: no pool of type %s can be named %q", ErrInvalid, t.Type, name)
	}
	return nil
}
