package main

import (
	"slices"
	"strings"

	"berth.dev/berth/internal/run"
)

// typed returns the commands of the bare side. For LVM they are Berth's own: an administrator
// would type the same. For ZFS they are other commands that make the same volumes.
func typed(pool string, learnt map[string][]run.Command) map[string][]run.Command {
	if !onZFS(pool) {
		return learnt
	}
	all := map[string][]run.Command{}
	for operation, commands := range learnt {
		all[operation] = typedZFS(operation, commands)
	}
	return all
}

// typedZFS returns the commands that an administrator types for an operation on the model's
// volume. The volume gets the properties that Berth gives it.
func typedZFS(operation string, learnt []run.Command) []run.Command {
	volume, copied := poolName(socketSide)+"/"+volumeID(model, 0), poolName(socketSide)+"/"+cloneID(model, 0)
	switch operation {
	case clone: // the snapshot that it is made from stays
		return slices.DeleteFunc(inPool(learnt), func(c run.Command) bool { return c.Args[0] == "destroy" })
	case deleteCopied: // the clone takes over the snapshots, which would prevent the deletion
		return []run.Command{zfsCommand("promote", copied), zfsCommand("destroy", volume)}
	case deleteSnapshot:
		return []run.Command{zfsCommand("destroy", copied+"@"+snapshotID(model, 0))}
	default:
		return inPool(learnt)
	}
}

// inPool returns the same commands for volumes that are in the pool itself: an administrator
// needs no filesystem to tell his volumes from other ones.
func inPool(learnt []run.Command) (commands []run.Command) {
	for _, c := range learnt {
		c.Args = slices.Clone(c.Args)
		for i, a := range c.Args {
			c.Args[i] = strings.Replace(a, "/"+volumesArea+"/", "/", 1)
		}
		commands = append(commands, c)
	}
	return commands
}

func zfsCommand(operation string, args ...string) run.Command {
	return run.Command{Operation: "zfs " + operation, Program: "zfs", Args: append([]string{operation}, args...)}
}
