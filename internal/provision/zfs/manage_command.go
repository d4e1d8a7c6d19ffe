package zfs

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

func (c Config) zpoolCommand(operation string, args ...string) run.Command {
	return run.Command{Operation: "zpool " + operation, Program: c.Zpool, Args: append([]string{operation}, args...)}
}

// makeZpoolCommand makes a zpool of one vdev. Nobody but Berth is to import it, since the
// file in which ZFS notes what to import would be the container's: it notes none.
func (c Config) makeZpoolCommand(name string, z provision.Zpool, nodes []string) run.Command {
	return c.zpoolCommand("create", slices.Concat([]string{
		"-o", "ashift=" + strconv.Itoa(z.Ashift), "-o", "comment=" + markOf(z), "-o", "cachefile=none",
		"-O", "mountpoint=none", "-O", "canmount=off", "-O", "volmode=dev", name,
	}, vdev(z, nodes))...)
}

// growZpoolCommand adds a vdev to a zpool.
func (c Config) growZpoolCommand(name string, z provision.Zpool, nodes []string) run.Command {
	return c.zpoolCommand("add", slices.Concat([]string{"-o", "ashift=" + strconv.Itoa(z.Ashift), name}, vdev(z, nodes))...)
}

func vdev(z provision.Zpool, nodes []string) []string {
	if z.Layout == provision.ZpoolStripe {
		return nodes
	}
	return append([]string{strings.ToLower(string(z.Layout))}, nodes...)
}

// markCommand prints the mark of a zpool that is imported.
func (c Config) markCommand(name string) run.Command {
	return c.zpoolCommand("get", "-H", "-o", "value", propComment, name)
}

// findCommand prints the zpools that are on some disks and not imported. No other disk
// is looked at: another machine may be using what is on it.
func (c Config) findCommand(disks []string) run.Command {
	return c.zpoolCommand("import", on(disks)...)
}

// importCommand imports a zpool by its number, which no other bears, and mounts nothing.
func (c Config) importCommand(id string, disks []string) run.Command {
	return c.zpoolCommand("import", slices.Concat([]string{"-N", "-o", "cachefile=none"}, on(disks), []string{id})...)
}

// on are the options that name the disks to look at. Those that are not there do not matter.
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

// propComment is a zpool's own property that is Berth's to write in the zpools it makes. ZFS
// writes it in the same instant as the zpool, and shows it of zpools that are not imported;
// a property of the first dataset would be written a moment later, and show in use only.
const propComment = "comment"

const markPrefix = "berth.dev:"

// markOf is the mark of a zpool that Berth makes, with how: berth.dev:RaidZ1:3:12. ZFS has
// room for 32 characters.
func markOf(z provision.Zpool) string {
	return fmt.Sprintf("%s%s:%d:%d", markPrefix, z.Layout, z.Width, z.Ashift)
}

// parseMark reads a mark; ok is false for what is none.
func parseMark(text string) (z provision.Zpool, ok bool) {
	parts := strings.Split(strings.TrimPrefix(text, markPrefix), ":")
	if !strings.HasPrefix(text, markPrefix) || len(parts) != 3 {
		return z, false
	}
	z.Layout = provision.ZpoolLayout(parts[0])
	z.Width, _ = strconv.Atoi(parts[1])
	z.Ashift, _ = strconv.Atoi(parts[2])
	return z, z.Check() == nil && markOf(z) == text
}
