package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

const (
	wipedSize   = 64 << 20
	wipedRounds = 5
)

// measureWiping deletes volumes with wiping, one after the other. It measures how long the
// caller waits, and how long it takes until the space is free.
func measureWiping(ctx context.Context, d disksOf) (all []wiping, err error) {
	pool := poolOf(thick, socketSide)
	for _, how := range []provision.Wipe{provision.WipeDiscard, provision.WipeZero} {
		w := wiping{How: string(how), Size: wipedSize, Processes: newProcesses(thick, deletion)}
		for n := range wipedRounds {
			progress("wiping by %s: round %d of %d", how, n+1, wipedRounds)
			id := volumeID(socketSide, n)
			if _, err := d.remote.Create(ctx, provision.CreateRequest{ID: id, Pool: pool, Size: wipedSize, Wipe: how}); err != nil {
				return nil, err
			}
			d.counter.Take()
			begun := time.Now()
			if err := d.remote.Delete(ctx, id); err != nil {
				return nil, err
			}
			deleted, awaited := time.Since(begun), d.counter.Take()
			if err := wiped(ctx, d.local, pool); err != nil {
				return nil, fmt.Errorf("by %s: %w", how, err)
			}
			freed := time.Since(begun)
			w.Deleted, w.Freed = append(w.Deleted, deleted.Seconds()), append(w.Freed, freed.Seconds())
			w.Processes.add(1, awaited, d.counter.Take())
			w.Processes.Following = append(w.Processes.Following, (freed - deleted).Seconds())
		}
		all = append(all, w)
	}
	return all, nil
}

// wiped waits until a pool has no remains of deleted volumes.
func wiped(ctx context.Context, p provision.Provisioner, pool provision.PoolRef) error {
	var failed error
	err := until(ctx, "a deleted volume is wiped", func() bool {
		var pools []provision.Pool
		if pools, failed = p.Report(ctx); failed != nil {
			return true
		}
		return !slices.ContainsFunc(pools, func(p provision.Pool) bool { return p.PoolRef == pool && len(p.Wiping) > 0 })
	})
	if failed != nil {
		return failed
	}
	return err
}
