package zpool

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Tool makes commands of the program zfs. Program is its path.
type Tool struct{ Program string }

// Command returns a command of zfs.
func (t Tool) Command(operation string, args ...string) run.Command {
	return run.Command{Operation: "zfs " + operation, Program: t.Program, Args: append([]string{operation}, args...)}
}

// ListCommand reports a zpool, with or without snapshots.
func (t Tool) ListCommand(zpool string, snapshots bool) run.Command {
	kinds := kindFilesystem + "," + kindVolume
	if snapshots {
		kinds += "," + kindSnapshot
	}
	return t.Command("list", "-H", "-p", "-r", "-t", kinds, "-o", strings.Join(columns, ","), zpool)
}

// MeasureCommand reports some snapshots in the same form.
func (t Tool) MeasureCommand(snapshots []string) run.Command {
	return t.Command("list", append([]string{"-H", "-p", "-t", kindSnapshot, "-o", strings.Join(columns, ",")}, snapshots...)...)
}

// areaCommand makes one of the hidden filesystems, which is mounted nowhere.
func (t Tool) areaCommand(name string) run.Command {
	return t.Command("create", "-o", "mountpoint=none", "-o", "canmount=off", name)
}

// hideCommand has such a filesystem mounted nowhere.
func (t Tool) hideCommand(name string) run.Command {
	return t.Command("set", "mountpoint=none", "canmount=off", name)
}

// DefaultBlock is the size in bytes of the blocks of a zvol whose request names none.
const DefaultBlock = 16 << 10

// createCommand makes a volume with room reserved for all of it.
func (t Tool) createCommand(r provision.CreateRequest, size int64, name string) run.Command {
	if r.Tree == provision.Dataset {
		return t.createDatasetCommand(r, size, name)
	}
	block := cmp.Or(r.Tuning.BlockSize, DefaultBlock)
	args := []string{"-V", strconv.FormatInt(size, 10), "-b", strconv.FormatInt(block, 10)}
	return t.Command("create", slices.Concat(args, properties(r, ""), []string{name})...)
}

// original is the snapshot that a clone is made of.
type original struct {
	snapshot, filesystem string
	size                 int64
}

// cloneCommand makes a clone and reserves room for all of it, which ZFS does not do by itself.
// It makes the clone larger than its origin if size is. The blocks are as large as the origin's.
func (t Tool) cloneCommand(r provision.CreateRequest, size int64, of original, name string) run.Command {
	if r.Tree == provision.Dataset {
		return t.cloneDatasetCommand(r, size, of, name)
	}
	whole := []string{"-o", "refreservation=auto"}
	if size > of.size { // setting it costs ZFS another write to the disks
		whole = append(whole, "-o", "volsize="+strconv.FormatInt(size, 10))
	}
	return t.Command("clone", slices.Concat(whole, properties(r, of.filesystem), []string{of.snapshot, name})...)
}

// reserveCommand gives a zvol its size, and reserves room for all of it.
func (t Tool) reserveCommand(name string, size int64) run.Command {
	return t.Command("set", "volsize="+strconv.FormatInt(size, 10), "refreservation=auto", name)
}

// fillCommand reserves room for all of a zvol.
func (t Tool) fillCommand(name string) run.Command {
	return t.Command("set", "refreservation=auto", name)
}

// growCommand makes a zvol larger. ZFS enlarges the reservation afterwards. If there is no room
// for that, ZFS takes both back. A loss of power may leave the size without the reservation.
func (t Tool) growCommand(name string, size int64) run.Command {
	return t.Command("set", "volsize="+strconv.FormatInt(size, 10), name)
}

func (t Tool) releaseCommand(name string) run.Command {
	return t.Command("set", "refreservation=none", name)
}

func (t Tool) recordCommand(name, filesystem string) run.Command {
	return t.Command("set", propFilesystem+"="+filesystem, name)
}

func (t Tool) renameCommand(from, to string) run.Command { return t.Command("rename", from, to) }

// destroyCommand removes a volume that has no snapshots. Nothing is ever destroyed
// recursively.
func (t Tool) destroyCommand(name string) run.Command { return t.Command("destroy", name) }

func (t Tool) snapshotCommand(name, at string, props []string) run.Command {
	return t.Command("snapshot", append(props, name+"@"+at)...)
}

// dropCommand removes a snapshot, or has it go with the last of its clones.
func (t Tool) dropCommand(snapshot string) run.Command {
	return t.Command("destroy", "-d", snapshot)
}

func (t Tool) rollbackCommand(snapshot string) run.Command {
	return t.Command("rollback", snapshot)
}
