package shell

import (
	"context"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// disks are the shared disks of a machine, for one life of its agent.
type disks struct{ p *process }

var _ shared.Disks = disks{}

func (d disks) node(of shared.Disk) *simdisk.Node { return d.p.m.attached(of) }

func (d disks) call(ctx context.Context, what string, of shared.Disk, happens func() error) error {
	return d.p.effect(ctx, toSAN, what, of.Volume, happens)
}

// Capabilities implements shared.Disks.
func (d disks) Capabilities() shared.Capabilities {
	return shared.Capabilities{Abort: true, Persistent: d.p.w.persistent, Types: []shared.Type{shared.WriteExclusive, shared.WriteExclusiveRegistrantsOnly}}
}

// Look implements shared.Disks.
func (d disks) Look(ctx context.Context, of shared.Disk) (v shared.View, err error) {
	err = d.call(ctx, "Look", of, func() error {
		v, err = d.node(of).Look(ctx, of)
		return err
	})
	return v, err
}

// Attach implements shared.Disks.
func (d disks) Attach(ctx context.Context, of shared.Disk) error {
	return d.call(ctx, "Attach", of, func() error { return d.node(of).Attach(ctx, of) })
}

// Detach implements shared.Disks.
func (d disks) Detach(ctx context.Context, of shared.Disk) error {
	return d.call(ctx, "Detach", of, func() error {
		d.p.w.oracle.detaches(d.p.m.kernel(of.Volume))
		return d.node(of).Detach(ctx, of)
	})
}

// Register implements shared.Disks.
func (d disks) Register(ctx context.Context, of shared.Disk, key ownership.RawKey, use shared.Use) error {
	return d.call(ctx, "Register", of, func() error { return d.node(of).Register(ctx, of, key, use) })
}

// Reserve implements shared.Disks.
func (d disks) Reserve(ctx context.Context, of shared.Disk, expect, key ownership.RawKey) error {
	return d.call(ctx, "Reserve", of, func() error {
		before, err := d.node(of).Look(ctx, of)
		if err != nil {
			return err
		}
		if err = d.node(of).Reserve(ctx, of, expect, key); err == nil && of.ManyWriters {
			d.p.w.oracle.expels(d.p, expect, key)
		} else if err == nil {
			d.p.w.oracle.reserves(d.p, before.Holder, key)
		}
		return err
	})
}

// Flush implements shared.Disks.
func (d disks) Flush(ctx context.Context, of shared.Disk) error {
	return d.call(ctx, "Flush", of, func() error { return d.node(of).Flush(ctx, of) })
}

// Clear implements shared.Disks.
