package main

import (
	"context"
	"fmt"
)

// measureGuest carries out the measurements that need disks, in a machine whose disks this
// process may overwrite. It loads the kernel's ZFS after all measurements that do not
// need it.
func measureGuest(ctx context.Context, o options) (r guestResults, err error) {
	if r.Machine, err = thisMachine(); err != nil {
		return r, err
	}
	if r.Machine.LVM, err = lvmVersion(); err != nil {
		return r, err
	}
	if err := r.compare(ctx, o, onLVM); err != nil {
		return r, err
	}
	if err := r.measureMore(ctx, o); err != nil {
		return r, err
	}
	if r.Machine.ZFS, err = loadZFS(); err != nil {
		return r, err
	}
	if err := r.compare(ctx, o, inZpools); err != nil {
		return r, err
	}
	r.Processes = merge(r.Processes)
	return r, nil
}

// compare measures Berth beside the bare commands.
func (r *guestResults) compare(ctx context.Context, o options, all []comparison) error {
	for _, c := range all {
		s := c.series(o)
		err := onPools(ctx, c.pool, c.sides, func(ctx context.Context, d disksOf) (err error) {
			s.counts, s.settle, s.tidying = d.counter.Take, settle, d.tidying
			if s.sides, err = sidesOf(ctx, s, d); err != nil {
				return fmt.Errorf("rehearsing with %s volumes: %w", c.pool, err)
			}
			samples, started, err := s.measure(ctx, o.rounds)
			r.Samples, r.Processes = append(r.Samples, samples...), append(r.Processes, started...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measureMore carries out the measurements that have no bare command to compare with.
func (r *guestResults) measureMore(ctx context.Context, o options) error {
	err := onPools(ctx, thick, []string{socketSide}, func(ctx context.Context, d disksOf) (err error) {
		r.Wiping, err = measureWiping(ctx, d)
		return err
	})
	if err != nil {
		return fmt.Errorf("wiping: %w", err)
	}
	err = onPools(ctx, thick, []string{socketSide}, func(ctx context.Context, d disksOf) (err error) {
		r.Stats, err = measureStats(ctx, o, d)
		return err
	})
	if err != nil {
		return fmt.Errorf("statistics: %w", err)
	}
	if r.Idle, err = idlePoold(ctx, o); err != nil {
		return fmt.Errorf("an idle poold: %w", err)
	}
	return nil
}

// onPools calls do while each side has its pool. Berth starts to serve the disks only
// then, as if the pools had been there before.
func onPools(ctx context.Context, pool string, sides []string, do func(context.Context, disksOf) error) error {
	return inPools(ctx, pool, sides, func(ctx context.Context) error { return withDisks(ctx, do) })
}
