package lvm

import (
	"strconv"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// cowMakes is how often LVM writes a group's metadata to make a copy-on-write snapshot, or
// to remove one: once for the logical volume and once for what it is to the volume.
const cowMakes = 2

// cowCommand takes a copy-on-write snapshot. LVM suspends the volume for it, and with that
// a filesystem that is mounted is brought to rest.
func (c Config) cowCommand(group, id, of string, size int64, how provision.Wipe) run.Command {
	args := []string{"--yes", "--type", "snapshot", "--size", bytes(size), "--chunksize", strconv.Itoa(cowChunk) + "b", "--name", cowName(id)}
	return c.command("lvcreate", append(tagged(args, cowTags(id, how)), group+"/"+of)...)
}

// splitCommand makes a copy-on-write snapshot a logical volume of its own again, which
// can be wiped.
func (c Config) splitCommand(group, id string) run.Command {
	return c.command("lvconvert", "--yes", "--splitsnapshot", group+"/"+cowName(id))
}

// thickCommand carves a logical volume out of the group and records what it is in one
// change.
func (c Config) thickCommand(group, id string, size int64, tags []string) run.Command {
	args := []string{"--yes", "--wipesignatures", "y", "--zero", "y", "--size", bytes(size), "--name", id}
	return c.command("lvcreate", append(tagged(args, tags), group)...)
}

// wholeCommand records that a copy holds all that it shall. Nobody shall write to a
// snapshot from then on. LVM writes all of it in one change.
func (c Config) wholeCommand(group, id string) run.Command {
	args := []string{"--yes", "--deltag", identity(id, true), "--addtag", identity(id, false)}
	if sortOf(id) == isSnapshot {
		args = append(args, "--permission", "r")
	}
	return c.command("lvchange", append(args, group+"/"+id)...)
}

func tagged(args, tags []string) []string {
	for _, tag := range tags {
		args = append(args, "--addtag", tag)
	}
	return args
}
