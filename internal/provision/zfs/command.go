package zfs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

func (c Config) command(operation string, args ...string) run.Command {
	return run.Command{Operation: "zfs " + operation, Program: c.Program, Args: append([]string{operation}, args...)}
}

// listCommand reports a zpool, with or without snapshots.
func (c Config) listCommand(zpool string, snapshots bool) run.Command {
	kinds := kindFilesystem + "," + kindVolume
	if snapshots {
		kinds += "," + kindSnapshot
	}
	return c.command("list", "-H", "-p", "-r", "-t", kinds, "-o", strings.Join(columns, ","), zpool)
}

// measureCommand reports some snapshots in the same form.
func (c Config) measureCommand(snapshots []string) run.Command {
	return c.command("list", append([]string{"-H", "-p", "-t", kindSnapshot, "-o", strings.Join(columns, ",")}, snapshots...)...)
}

// areaCommand makes one of the hidden filesystems, which is mounted nowhere.
func (c Config) areaCommand(name string) run.Command {
	return c.command("create", "-o", "mountpoint=none", "-o", "canmount=off", name)
}

// hideCommand has such a filesystem mounted nowhere.
func (c Config) hideCommand(name string) run.Command {
	return c.command("set", "mountpoint=none", "canmount=off", name)
}

// createCommand makes a volume with room reserved for all of it.
func (c Config) createCommand(r provision.CreateRequest, size int64, name string) run.Command {
	if r.Filesystem == provision.Dataset {
		return c.createDatasetCommand(r, size, name)
	}
	block := cmp.Or(r.ZFS.BlockSize, provision.DefaultZFSBlock)
	args := []string{"-V", strconv.FormatInt(size, 10), "-b", strconv.FormatInt(block, 10)}
	return c.command("create", slices.Concat(args, properties(r, ""), []string{name})...)
}

// original is what a clone is made of.
type original struct {
	snapshot, filesystem string
	size                 int64
}

// cloneCommand makes a clone with room reserved for all of it, which clones have not by
// themselves, and larger if it is to be. Its blocks are as large as its origin's.
func (c Config) cloneCommand(r provision.CreateRequest, size int64, of original, name string) run.Command {
	if r.Filesystem == provision.Dataset {
		return c.cloneDatasetCommand(r, size, of, name)
	}
	whole := []string{"-o", "refreservation=auto"}
	if size > of.size { // setting it costs ZFS another write to the disks
		whole = append(whole, "-o", "volsize="+strconv.FormatInt(size, 10))
	}
	return c.command("clone", slices.Concat(whole, properties(r, of.filesystem), []string{of.snapshot, name})...)
}

// reserveCommand gives a zvol its size, and reserves room for all of it.
func (c Config) reserveCommand(name string, size int64) run.Command {
	return c.command("set", "volsize="+strconv.FormatInt(size, 10), "refreservation=auto", name)
}

// fillCommand reserves room for all of a zvol.
func (c Config) fillCommand(name string) run.Command {
	return c.command("set", "refreservation=auto", name)
}

// growCommand makes a zvol larger. ZFS enlarges the reservation afterwards, and if it has no
// room for that takes both back; a loss of power may leave the one without the other.
func (c Config) growCommand(name string, size int64) run.Command {
	return c.command("set", "volsize="+strconv.FormatInt(size, 10), name)
}

func (c Config) releaseCommand(name string) run.Command {
	return c.command("set", "refreservation=none", name)
}

func (c Config) recordCommand(name, filesystem string) run.Command {
	return c.command("set", propFilesystem+"="+filesystem, name)
}

func (c Config) renameCommand(from, to string) run.Command { return c.command("rename", from, to) }

// destroyCommand removes a volume that has no snapshots. Nothing is ever destroyed
// recursively.
func (c Config) destroyCommand(name string) run.Command { return c.command("destroy", name) }

func (c Config) snapshotCommand(name, at string, props []string) run.Command {
	return c.command("snapshot", append(props, name+"@"+at)...)
}

// dropCommand removes a snapshot, or has it go with the last of its clones.
func (c Config) dropCommand(snapshot string) run.Command { return c.command("destroy", "-d", snapshot) }

func (c Config) rollbackCommand(snapshot string) run.Command { return c.command("rollback", snapshot) }
