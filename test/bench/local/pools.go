package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// The kinds of pools.
const (
	thick   = "thick"
	thin    = "thin"
	zvol    = "zvol"
	dataset = "dataset"
)

// onZFS says whether a pool is a zpool.
func onZFS(pool string) bool { return pool == zvol || pool == dataset }

// disks of the guest: one for the pool of each side, so that the pools are alike and no side
// makes the pool of another grow.
var disks = map[string]string{socketSide: "/dev/sda", localSide: "/dev/sdb", bareSide: "/dev/sdc"}

// poolName returns the name of the volume group or the zpool of a side.
func poolName(side string) string { return "bench-" + side }

// poolOf returns the pool of a side.
func poolOf(pool, side string) provision.PoolRef {
	switch name := poolName(side); {
	case onZFS(pool):
		return provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + name}
	case pool == thin:
		return provision.PoolRef{Type: provision.LVMThin, Name: name + "/pool"}
	default:
		return provision.PoolRef{Type: provision.LVM, Name: name}
	}
}

// inPools calls do while each named side has an empty pool.
func inPools(ctx context.Context, pool string, sides []string, do func(ctx context.Context) error) (err error) {
	makePool, removePool := makeGroup, removeGroup
	if onZFS(pool) {
		makePool, removePool = makeZpool, removeZpool
	}
	for _, side := range sides {
		if err := makePool(pool, side); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removePool(side)) }()
	}
	return do(ctx)
}

// runTool runs a command, as an administrator would, and returns its output.
func runTool(program string, args ...string) (string, error) {
	out, err := run.Exec{}.Change(run.Command{Operation: program, Program: program, Args: args})
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// settle waits until udev has handled all devices that came, went or changed. Otherwise the
// next side would wait for udev, or find a zvol in use.
func settle() error {
	_, err := runTool("udevadm", "settle", "--timeout=120")
	return err
}
