package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// disks of the guest: one for the volume group of each side, so that the groups are
// alike and none grows by what another side does.
var disks = map[string]string{socketSide: "/dev/sda", localSide: "/dev/sdb", bareSide: "/dev/sdc"}

// thinSize is enough for what LVM writes by itself: nobody fills the volumes.
const thinSize = "512M"

// withoutUdev makes LVM manage device nodes itself, as Berth has it do: mixed with
// commands that leave them to udev, names stay behind.
const withoutUdev = "activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}"

// runLVM runs an LVM command, as an administrator would.
func runLVM(args ...string) (string, error) {
	full := append([]string{args[0], "--config", withoutUdev}, args[1:]...)
	out, err := run.Exec{}.Change(run.Command{Operation: args[0], Program: "lvm", Args: full})
	if err != nil {
		return "", fmt.Errorf("lvm %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// inGroups does something while each named side has an empty pool: a volume group, or
// a thin pool in one.
func inGroups(ctx context.Context, pool string, sides []string, do func(ctx context.Context) error) (err error) {
	for _, side := range sides {
		if _, err := runLVM("vgcreate", "--yes", "-ff", groupOf(side), disks[side]); err != nil {
			return err
		}
		defer func() {
			_, removed := runLVM("vgremove", "--yes", "--force", groupOf(side))
			err = errors.Join(err, removed)
		}()
		if pool != thin {
			continue
		}
		if _, err := runLVM("lvcreate", "--yes", "--type", "thin-pool", "--size", thinSize, "--name", "pool", groupOf(side)); err != nil {
			return err
		}
	}
	return do(ctx)
}

// The kinds of pools.
const (
	thick = "thick"
	thin  = "thin"
)

// poolOf is the pool of a side.
func poolOf(pool, side string) provision.PoolRef {
	if pool == thin {
		return provision.PoolRef{Type: provision.LVMThin, Name: groupOf(side) + "/pool"}
	}
	return provision.PoolRef{Type: provision.LVM, Name: groupOf(side)}
}
