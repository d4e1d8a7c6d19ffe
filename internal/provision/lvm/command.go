package lvm

import (
	"strconv"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// settings override the machine's lvm.conf where Berth depends on them. Locking is
// never touched: other tools use the same volume groups. In a container LVM would
// begin to monitor a thin pool by a daemon of the container's own; a pool that the
// machine monitors stays so.
//
// LVM checks the metadata of a thin pool when it activates one. That the check takes the
// kernel's mark off metadata which was found sound is LVM's default, and not that of all
// distributions: Debian's LVM leaves it, and the pool read-only for ever.
//
// LVM's archive has the whole text of a group before each change, for a month: with volumes
// that come and go it would fill the machine's disk. The backup, which is the text as it is
// now, is kept, and so is the archive of what people change. A shorter time to keep files
// would apply to those of people, too.
func (c Config) settings() string {
	s := "report{compact_output=0 list_item_separator=\",\"} global{thin_check_options=[\"-q\",\"--clear-needs-check-flag\"]}"
	s += " backup{archive=0}"
	if !c.Udev {
		s += " activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}"
	}
	return s
}

// configAt is where the settings are among the arguments of a command.
const configAt = 2

func (c Config) command(operation string, args ...string) run.Command {
	return run.Command{
		Operation: operation,
		Program:   c.Program,
		Args:      append([]string{operation, "--config", c.settings()}, args...),
	}
}

// reportCommand reports the named volume groups, or all.
func (c Config) reportCommand(groups ...string) run.Command {
	return c.command("fullreport", append([]string{
		"--reportformat", "json", "--units", "b", "--nosuffix", "--binary",
		"--configreport", "vg", "-o", groupColumns,
		"--configreport", "pv", "-o", deviceColumns,
		"--configreport", "lv", "-o", volumeColumns,
		"--configreport", "pvseg", "-o", ",", // a comma alone leaves a section empty
		"--configreport", "seg", "-o", ",",
	}, groups...)...)
}

// hostCommand shows the machine's own settings of which devices LVM reads.
func (c Config) hostCommand() run.Command {
	return run.Command{Operation: "lvmconfig", Program: c.Program, Args: []string{"lvmconfig", "--typeconfig", "full", "devices"}}
}

// namesCommand lists the volume groups. Read-only means that LVM reads the disks
// and waits for no group's lock.
func (c Config) namesCommand() run.Command {
	return c.command("vgs", "--readonly", "--reportformat", "json", "-o", "vg_name")
}

// createCommand makes a volume and records what it is in one change of the group.
func (c Config) createCommand(r provision.CreateRequest, size int64) run.Command {
	group, thin := split(r.Pool)
	if thin == "" {
		return c.thickCommand(group, r.ID, size, newTags(r))
	}
	// Nothing is to be wiped: what a zeroing pool gives out is blank. A pool that is not
	// there is an error, never made: that would take a size of its own.
	args := []string{"--yes", "--type", "thin", "--thinpool", thin, "--virtualsize", bytes(size), "--name", r.ID}
	return c.command("lvcreate", append(tagged(args, newTags(r)), group)...)
}

// snapshotCommand takes a snapshot of a thin volume. LVM suspends the volume for it, and with
// that a filesystem that is mounted is brought to rest. Nobody needs the snapshot's
// device, and nobody shall write to it.
func (c Config) snapshotCommand(group, id string, s snapshot) run.Command {
	return c.thinSnapshotCommand(group, s.of, id, snapshotTags(id, s), "--permission", "r", "--setactivationskip", "y")
}

// copyCommand makes a volume that begins as its source, a snapshot or a volume, or that is
// to be filled with what that holds.
func (c Config) copyCommand(r provision.CreateRequest, from carved, size int64) run.Command {
	group, thin := split(r.Pool)
	if thin == "" {
		return c.thickCommand(group, r.ID, size, copyTags(r, from, size))
	}
	return c.thinSnapshotCommand(group, sourceID(r.Source), r.ID, copyTags(r, from, size), "--permission", "rw", "--setactivationskip", "n")
}

// thinSnapshotCommand gives no size: without one LVM makes a snapshot in the origin's own
// thin pool, or none. Asked by --snapshot it would first look for the kernel's target for
// thick snapshots, which nothing here needs and a container cannot load.
func (c Config) thinSnapshotCommand(group, origin, name string, tags []string, options ...string) run.Command {
	args := append([]string{"--yes", "--type", "thin", "--name", name}, options...)
	return c.command("lvcreate", append(tagged(args, tags), group+"/"+origin)...)
}

func (c Config) extendCommand(group, id string, size int64) run.Command {
	return c.command("lvextend", "--yes", "--size", bytes(size), group+"/"+id)
}

// removeCommand removes volumes and snapshots. LVM goes on with the others when one cannot be
// removed.
func (c Config) removeCommand(group string, ids ...string) run.Command {
	return c.command("lvremove", append([]string{"--yes"}, within(group, ids)...)...)
}

// markCommand makes a volume or a snapshot what a deleted one left: LVM writes both tags in
// one change, and that it can be written if it could not. Asked for what is so, LVM fails.
func (c Config) markCommand(group, id string, is carved) run.Command {
	args := append([]string{"--yes", "--deltag", identity(id, is.copying), "--addtag", tagWiping + id}, wipedTags(is.wiped, 0)...)
	if is.readOnly {
		args = append(args, "--permission", "rw")
	}
	return c.command("lvchange", append(args, group+"/"+id)...)
}

// wipedCommand records how many bytes of a remnant need not be wiped again, in place of what
// is recorded.
func (c Config) wipedCommand(group, id string, before, now int64) run.Command {
	return c.command("lvchange", append(append([]string{"--yes"}, wipedTags(before, now)...), group+"/"+id)...)
}

func wipedTags(before, now int64) (args []string) {
	if before > 0 {
		args = append(args, "--deltag", tagWiped+strconv.FormatInt(before, 10))
	}
	if now > 0 {
		args = append(args, "--addtag", tagWiped+strconv.FormatInt(now, 10))
	}
	return args
}

func (c Config) tagCommand(group, id, tag string) run.Command {
	return c.command("lvchange", "--yes", "--addtag", tag, group+"/"+id)
}

func (c Config) activateCommand(group string, ids ...string) run.Command {
	return c.command("lvchange", append([]string{"--yes", "--activate", "y"}, within(group, ids)...)...)
}

// nodesCommand makes the nodes of an active volume anew. LVM is told to do so itself: udev leaves
// alone what it did not make.
func (c Config) nodesCommand(group, id string) run.Command {
	c.Udev = false
	return c.command("vgmknodes", group+"/"+id)
}

// resumeCommand loads what LVM has recorded of volumes into the kernel, and resumes them.
func (c Config) resumeCommand(group string, ids ...string) run.Command {
	return c.command("lvchange", append([]string{"--yes", "--refresh"}, within(group, ids)...)...)
}

func bytes(size int64) string { return strconv.FormatInt(size, 10) + "b" }

// within names logical volumes of a group as LVM does.
func within(group string, ids []string) (names []string) {
	for _, id := range ids {
		names = append(names, group+"/"+id)
	}
	return names
}
