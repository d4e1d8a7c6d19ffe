package main

import (
	"slices"
	"strings"

	"berth.dev/berth/internal/run"
)

// typed are the commands that are taken for the bare ones. Of LVM they are Berth's own: an
// administrator would type no other. Of ZFS they come to the same volumes.
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

// typedZFS is what one types for an operation on the model's volume. Its properties are those
// that Berth gives it.
func typedZFS(operation string, learnt []run.Command) []run.Command {
	volume, copied := poolName(socketSide)+"/"+volumeID(model, 0), poolName(socketSide)+"/"+cloneID(model, 0)
	switch operation {
	case clone: // its base stays
		return slices.DeleteFunc(inPool(learnt), func(c run.Command) bool { return c.Args[0] == "destroy" })
	case deleteCopied: // the clone takes the snapshots over, or they would be in the way
		return []run.Command{zfsCommand("promote", copied), zfsCommand("destroy", volume)}
	case deleteSnapshot:
		return []run.Command{zfsCommand("destroy", copied+"@"+snapshotID(model, 0))}
	default:
		return inPool(learnt)
	}
}

// inPool is the same about volumes that are in the pool itself: an administrator needs no
// filesystem to tell his volumes from those of others.
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
