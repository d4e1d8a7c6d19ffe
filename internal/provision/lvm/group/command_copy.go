package group

import (
	"strconv"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// cowMakes is how often LVM writes a group's metadata to make or to remove a copy-on-write
// snapshot: once for the logical volume and once for its relation to the volume.
const cowMakes = 2

// cowCommand takes a copy-on-write snapshot. LVM suspends the volume for it, which freezes a
// mounted filesystem.
func (t Tool) cowCommand(group, id, of string, size int64, how provision.Wipe) run.Command {
	args := []string{"--yes", "--type", "snapshot", "--size", bytes(size), "--chunksize", strconv.Itoa(cowChunk) + "b", "--name", cowName(id)}
	return t.command("lvcreate", append(tagged(args, cowTags(id, how)), group+"/"+of)...)
}

// splitCommand makes a copy-on-write snapshot a logical volume of its own again, which
// can be wiped.
func (t Tool) splitCommand(group, id string) run.Command {
	return t.command("lvconvert", "--yes", "--splitsnapshot", group+"/"+cowName(id))
}

// thickCommand carves a logical volume with its tags out of the group, in one change.
func (t Tool) thickCommand(group, id string, size int64, tags []string) run.Command {
	args := []string{"--yes", "--wipesignatures", "y", "--zero", "y", "--size", bytes(size), "--name", id}
	return t.command("lvcreate", append(tagged(args, tags), group)...)
}

// wholeCommand records that a copy is filled, and makes a snapshot read-only. LVM writes all of
// it in one change.
func (t Tool) wholeCommand(group, id string) run.Command {
	args := []string{"--yes", "--deltag", identity(id, true), "--addtag", identity(id, false)}
	if sortOf(id) == isSnapshot {
		args = append(args, "--permission", "r")
	}
	return t.command("lvchange", append(args, group+"/"+id)...)
}

func tagged(args, tags []string) []string {
	for _, tag := range tags {
		args = append(args, "--addtag", tag)
	}
	return args
}
