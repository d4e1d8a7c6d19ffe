package zpool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// The commands that make zpools, let them grow and bring them back. None is ever forced:
// so ZFS itself takes no disk that bears a signature, mixes no layouts, and imports nothing
// that another machine may be using.

// PoolTool makes commands of the program zpool. Program is its path.
type PoolTool struct{ Program string }

func (t PoolTool) command(operation string, args ...string) run.Command {
	return run.Command{Operation: "zpool " + operation, Program: t.Program, Args: append([]string{operation}, args...)}
}

// MakeZpoolCommand makes a zpool of one vdev. Only Berth is to import it: the file in which ZFS
// notes which zpools to import would be the container's, so ZFS is told to use no such file.
func (t PoolTool) MakeZpoolCommand(name string, z provision.Layout, nodes []string) run.Command {
	return t.command("create", slices.Concat([]string{
		"-o", "ashift=" + strconv.Itoa(z.Ashift), "-o", "comment=" + MarkOf(z), "-o", "cachefile=none",
		"-O", "mountpoint=none", "-O", "canmount=off", "-O", "volmode=dev", name,
	}, vdev(z, nodes))...)
}

// GrowZpoolCommand adds a vdev to a zpool.
func (t PoolTool) GrowZpoolCommand(name string, z provision.Layout, nodes []string) run.Command {
	return t.command("add", slices.Concat([]string{"-o", "ashift=" + strconv.Itoa(z.Ashift), name}, vdev(z, nodes))...)
}

func vdev(z provision.Layout, nodes []string) []string {
	if z.Redundancy == provision.Stripe {
		return nodes
	}
	return append([]string{strings.ToLower(string(z.Redundancy))}, nodes...)
}

// MarkCommand prints the mark of a zpool that is imported.
func (t PoolTool) MarkCommand(name string) run.Command {
	return t.command("get", "-H", "-o", "value", propComment, name)
}

// FindCommand prints the zpools that are on some disks and not imported. It looks at no other
// disk: another machine may be using a zpool on it.
func (t PoolTool) FindCommand(disks []string) run.Command {
	return t.command("import", on(disks)...)
}

// ImportCommand imports a zpool by its number, which no other bears, and mounts nothing.
func (t PoolTool) ImportCommand(id string, disks []string) run.Command {
	return t.command("import", slices.Concat([]string{"-N", "-o", "cachefile=none"}, on(disks), []string{id})...)
}

// on returns the options that name the disks to look at. Disks that are not there do not matter.
func on(disks []string) (options []string) {
	for _, disk := range disks {
		options = append(options, "-d", partition(disk))
	}
	return options
}

// partition is the name of the partition of a disk in which ZFS has its data.
func partition(disk string) string {
	switch last := disk[len(disk)-1]; {
	case strings.HasPrefix(disk, "/dev/disk/"):
		return disk + "-part1"
	case last >= '0' && last <= '9':
		return disk + "p1"
	}
	return disk + "1"
}

// propComment is the property of a zpool in which Berth writes its mark when it makes one. ZFS
// writes it in the same instant as the zpool, and shows it for zpools that are not imported, too.
// A property of the first dataset would be written a moment later, and only be shown for zpools
// that are imported.
const propComment = "comment"

const markPrefix = "berth.dev:"

// MarkOf returns the mark of a zpool that Berth makes, with layout, width and ashift:
// berth.dev:RaidZ1:3:12. ZFS has room for 32 characters.
func MarkOf(z provision.Layout) string {
	return fmt.Sprintf("%s%s:%d:%d", markPrefix, z.Redundancy, z.Width, z.Ashift)
}

// parseMark reads a mark; ok is false if the text is none.
func parseMark(text string) (z provision.Layout, ok bool) {
	parts := strings.Split(strings.TrimPrefix(text, markPrefix), ":")
	if !strings.HasPrefix(text, markPrefix) || len(parts) != 3 {
		return z, false
	}
	z.Redundancy = provision.Redundancy(parts[0])
	z.Width, _ = strconv.Atoi(parts[1])
	z.Ashift, _ = strconv.Atoi(parts[2])
	return z, provision.TraitsOf(provision.ZFS).CheckLayout(z) == nil && MarkOf(z) == text
}

// SyncCommand has ZFS end the group of changes that is open in a zpool, and returns when that is on
// the disks.
func (t PoolTool) SyncCommand(name string) run.Command { return t.command("sync", name) }
