package shared

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// Finder are the disks of several provisioners, each of which it finds by the disk.
type Finder struct {
	Find func(d Disk) (Disks, error)
	// Promises are what all of them promise.
	Promises Capabilities
}

var (
	_ Disks   = Finder{}
	_ Glancer = Finder{}
)

// Schemes finds a provisioner by the scheme of the disk's handle.
func Schemes(by map[string]Disks) Finder {
	f := Finder{Promises: Capabilities{Abort: true, Persistent: true, Types: []Type{WriteExclusive, WriteExclusiveRegistrantsOnly}}}
	for _, disks := range by {
		c := disks.Capabilities()
		f.Promises.Abort, f.Promises.Persistent = f.Promises.Abort && c.Abort, f.Promises.Persistent && c.Persistent
		f.Promises.Types = slices.DeleteFunc(f.Promises.Types, func(t Type) bool { return !slices.Contains(c.Types, t) })
	}
	f.Find = func(d Disk) (Disks, error) {
		if disks, known := by[schemeOf(d.Handle)]; known {
			return disks, nil
		}
		has := "none"
		if len(by) > 0 {
			has = strings.Join(slices.Sorted(maps.Keys(by)), ", ")
		}
		return nil, fmt.Errorf("%w: volume %s is the disk %.300q, and this agent has no provisioner of that scheme (it has: %s)",
			provision.ErrUnsupported, d.Volume, d.Handle, has)
	}
	return f
}

// schemeOf is the scheme of a handle; empty if it has none.
func schemeOf(handle string) string {
	scheme, _, ok := strings.Cut(handle, "://")
	if !ok {
		return ""
	}
	return scheme
}

// HasScheme says whether a handle is one of the provisioner that a scheme names.
func HasScheme(handle, scheme string) bool { return scheme != "" && schemeOf(handle) == scheme }

// with lets the provisioner of a disk do something.
func (f Finder) with(d Disk, do func(Disks) error) error {
	disks, err := f.Find(d)
	if err != nil {
		return err
	}
	return do(disks)
}

// Capabilities implements Disks.
func (f Finder) Capabilities() Capabilities { return f.Promises }

// Look implements Disks.
func (f Finder) Look(ctx context.Context, d Disk) (v View, err error) {
	err = f.with(d, func(disks Disks) error {
		v, err = disks.Look(ctx, d)
		return err
	})
	return v, err
}

// Glance implements Glancer.
func (f Finder) Glance(ctx context.Context, d Disk) (v View, err error) {
	err = f.with(d, func(disks Disks) error {
		v, err = Glance(ctx, disks, d)
		return err
	})
	return v, err
}

// Attach implements Disks.
func (f Finder) Attach(ctx context.Context, d Disk) error {
	return f.with(d, func(disks Disks) error { return disks.Attach(ctx, d) })
}

// Detach implements Disks.
func (f Finder) Detach(ctx context.Context, d Disk) error {
	return f.with(d, func(disks Disks) error { return disks.Detach(ctx, d) })
}

// Register implements Disks.
func (f Finder) Register(ctx context.Context, d Disk, key ownership.RawKey, use Use) error {
	return f.with(d, func(disks Disks) error { return disks.Register(ctx, d, key, use) })
}

// Reserve implements Disks.
func (f Finder) Reserve(ctx context.Context, d Disk, expect, key ownership.RawKey) error {
	return f.with(d, func(disks Disks) error { return disks.Reserve(ctx, d, expect, key) })
}

// Flush implements Disks.
func (f Finder) Flush(ctx context.Context, d Disk) error {
	return f.with(d, func(disks Disks) error { return disks.Flush(ctx, d) })
}
