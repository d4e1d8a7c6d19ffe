package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
)

// Paths in the guest.
const (
	berthProgram = "/root/berth"
	pooldSocket  = "/run/berth-bench/poold.sock"
)

// idlePoold measures the resources that a poold process uses on a node with volumes, on real
// LVM.
func idlePoold(ctx context.Context, o options) (i idle, err error) {
	err = inPools(ctx, thick, []string{socketSide}, func(ctx context.Context) error {
		return withProgram(ctx, []string{berthProgram, "poold", "--socket", pooldSocket}, func(ctx context.Context, pid int) error {
			client, err := dial(ctx, pooldSocket)
			if err != nil {
				return err
			}
			defer client.Close()
			if err := populate(ctx, client, o); err != nil {
				return err
			}
			i, err = observe(ctx, pid, o.idleVolumes, o.idleFor)
			return err
		})
	})
	return i, err
}

// populate makes the volumes of an idle node.
func populate(ctx context.Context, client *poold.Client, o options) error {
	const size = 4 << 20
	progress("%d volumes of a node that is idle", o.idleVolumes)
	begun := time.Now()
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(o.atOnce)
	for n := range o.idleVolumes {
		all.Go(func() error {
			_, err := client.Create(ctx, provision.CreateRequest{
				ID: volumeID(socketSide, n), Pool: poolOf(thick, socketSide), Size: size, Wipe: provision.WipeNone,
				Labels: map[string]string{"claim": fmt.Sprintf("data-%d", n), "namespace": "bench"},
			})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return fmt.Errorf("making volumes: %w", err)
	}
	progress("they took %s", time.Since(begun).Round(time.Second))
	return nil
}
