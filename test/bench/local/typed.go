package main

import (
	"slices"
	"strings"

	"berth.dev/berth/internal/run"
)

// reserve has ZFS reserve room for all of a zvol.
const reserve = "refreservation=auto"

// typed are the commands that are taken for the bare ones. Of LVM they are Berth's own: an
// administrator would type no other. Of ZFS he types fewer to come to the same volumes.
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
	case create, clone:
		return inPlace(learnt)
	case deleteCopied: // the clone takes the snapshots over, or they would be in the way
		return []run.Command{zfsCommand("promote", copied), zfsCommand("destroy", volume)}
	case deleteSnapshot:
		return []run.Command{zfsCommand("destroy", copied+"@"+snapshotID(model, 0))}
	default:
		return learnt
	}
}

// inPlace makes a volume where it is to be at once. The snapshot that a clone is of stays.
func inPlace(learnt []run.Command) (commands []run.Command) {
	for _, c := range learnt {
		c.Args = slices.Clone(c.Args)
		for i, a := range c.Args {
			c.Args[i] = strings.Replace(a, "/"+freshArea+"/", "/", 1)
		}
		switch c.Args[0] {
		case "create", "snapshot", "clone":
			commands = append(commands, c)
		case "set": // a clone is made with its reservation, since it is as large as its origin
			if last := len(commands) - 1; slices.Contains(c.Args, reserve) {
				commands[last].Args = slices.Insert(commands[last].Args, 1, "-o", reserve)
			}
		}
	}
	return commands
}

func zfsCommand(operation string, args ...string) run.Command {
	return run.Command{Operation: "zfs " + operation, Program: "zfs", Args: append([]string{operation}, args...)}
}
