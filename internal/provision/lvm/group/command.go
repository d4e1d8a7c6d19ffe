package group

import (
	"strconv"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Tool makes the command lines of LVM.
type Tool struct {
	Program string
	// Udev says that udev makes the device nodes, and that LVM waits for it.
	Udev bool
}

// settings override the machine's lvm.conf where Berth depends on them. Locking is never touched:
// other tools use the same volume groups. In a container LVM would begin to monitor a thin pool
// with a daemon of the container's own. A pool that the machine monitors stays monitored.
//
// LVM checks the metadata of a thin pool when it activates the pool. By LVM's default the check
// clears the kernel's mark on metadata that it finds sound. Not all distributions keep that
// default: Debian's LVM leaves the mark, and the pool stays read-only for ever.
//
// LVM's archive keeps the whole text of a group before each change, for a month. With volumes
// that come and go it would fill the machine's disk, so Berth's commands write none. The backup,
// which is the current text, is kept, and so is the archive of changes by administrators. A
// shorter retention time would apply to their files, too.
func (t Tool) settings() string {
	s := "report{compact_output=0 list_item_separator=\",\"} global{thin_check_options=[\"-q\",\"--clear-needs-check-flag\"]}"
	s += " backup{archive=0}"
	if !t.Udev {
		s += " activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}"
	}
	return s
}

// quiet keeps LVM from warning that this process has left it open files.
var quiet = []string{"LVM_SUPPRESS_FD_WARNINGS=1"}

// ConfigAt is where the settings are among the arguments of a command.
const ConfigAt = 2

func (t Tool) command(operation string, args ...string) run.Command {
	return run.Command{
		Operation: operation,
		Program:   t.Program,
		Args:      append([]string{operation, "--config", t.settings()}, args...),
		Env:       quiet,
	}
}

// ReportCommand reports the named volume groups, or all.
func (t Tool) ReportCommand(groups ...string) run.Command {
	return t.command("fullreport", append([]string{
		"--reportformat", "json", "--units", "b", "--nosuffix", "--binary",
		"--configreport", "vg", "-o", groupColumns,
		"--configreport", "pv", "-o", deviceColumns,
		"--configreport", "lv", "-o", volumeColumns,
		"--configreport", "pvseg", "-o", ",", // a comma alone leaves a section empty
		"--configreport", "seg", "-o", ",",
	}, groups...)...)
}

// HostCommand shows the machine's own settings of which devices LVM reads. On a machine without a
// configuration file of LVM the command fails unless it is given some setting, which may be none.
func (t Tool) HostCommand() run.Command {
	return run.Command{Operation: "lvmconfig", Program: t.Program, Args: []string{"lvmconfig", "--config", "global{}", "--typeconfig", "full", "devices"}, Env: quiet}
}

// NamesCommand lists the volume groups. Read-only means that LVM reads the disks
// and waits for no group's lock.
func (t Tool) NamesCommand() run.Command {
	return t.command("vgs", "--readonly", "--reportformat", "json", "-o", "vg_name")
}

// createCommand makes a volume with its tags, in one change of the group.
func (t Tool) createCommand(r provision.CreateRequest, size int64) run.Command {
	group, thin := Split(r.Pool)
	if thin == "" {
		return t.thickCommand(group, r.ID, size, newTags(r))
	}
	// Nothing is to be wiped: a zeroing pool gives out blank blocks. LVM fails if the pool does
	// not exist, and never makes it: for that it would need a --size.
	args := []string{"--yes", "--type", "thin", "--thinpool", thin, "--virtualsize", bytes(size), "--name", r.ID}
	return t.command("lvcreate", append(tagged(args, newTags(r)), group)...)
}

// snapshotCommand takes a snapshot of a thin volume. LVM suspends the volume for it, which
// freezes a mounted filesystem. No process needs the snapshot's device, and none may write to it.
func (t Tool) snapshotCommand(group, id string, s snapshot) run.Command {
	return t.thinSnapshotCommand(group, s.of, id, snapshotTags(id, s), "--permission", "r", "--setactivationskip", "y")
}

// copyCommand makes a volume that begins as its source, a snapshot or a volume. A thick one is
// filled with the data of the source later.
func (t Tool) copyCommand(r provision.CreateRequest, from carved, size int64) run.Command {
	group, thin := Split(r.Pool)
	if thin == "" {
		return t.thickCommand(group, r.ID, size, copyTags(r, from, size))
	}
	return t.thinSnapshotCommand(group, SourceID(r.Source), r.ID, copyTags(r, from, size), "--permission", "rw", "--setactivationskip", "n")
}

// thinSnapshotCommand gives no size: without one LVM makes the snapshot in the origin's own thin
// pool, or fails. With --snapshot it would first look for the kernel's target for thick
// snapshots, which is not needed here and which a container cannot load.
func (t Tool) thinSnapshotCommand(group, origin, name string, tags []string, options ...string) run.Command {
	args := append([]string{"--yes", "--type", "thin", "--name", name}, options...)
	return t.command("lvcreate", append(tagged(args, tags), group+"/"+origin)...)
}

// extendCommand extends a logical volume (GROUP/NAME) to a size in bytes: a volume, or the data
// of a thin pool.
func (t Tool) extendCommand(lv string, size int64) run.Command {
	return t.command("lvextend", "--yes", "--size", bytes(size), lv)
}

// removeCommand removes volumes and snapshots. LVM goes on with the others when one cannot be
// removed, and leaves out those that are not the reported ones.
func (t Tool) removeCommand(g *Facts, ids ...string) run.Command {
	return t.command("lvremove", append([]string{"--yes", "--select", g.those(ids)}, within(g.Name, ids)...)...)
}

// markCommand turns a volume or a snapshot into a remnant. LVM writes both tags and the
// permission in one change. LVM fails if it is asked for the permission that is set already, so
// only a read-only one is made writable. LVM leaves out one that is not the reported one.
func (t Tool) markCommand(g *Facts, id string, is carved) run.Command {
	args := append([]string{"--yes", "--select", g.those([]string{id}), "--deltag", identity(id, is.copying), "--addtag", tagWiping + id}, wipedTags(is.wiped, 0)...)
	if is.readOnly {
		args = append(args, "--permission", "rw")
	}
	return t.command("lvchange", append(args, g.Name+"/"+id)...)
}

// wipedCommand records how many bytes of a remnant need not be wiped again, in place of the
// number recorded before.
func (t Tool) wipedCommand(group, id string, before, now int64) run.Command {
	return t.command("lvchange", append(append([]string{"--yes"}, wipedTags(before, now)...), group+"/"+id)...)
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

// ActivateCommand activates logical volumes.
func (t Tool) ActivateCommand(group string, ids ...string) run.Command {
	return t.command("lvchange", append([]string{"--yes", "--activate", "y"}, within(group, ids)...)...)
}

// DeactivateCommand deactivates logical volumes. LVM leaves those active that are open, and fails.
func (t Tool) DeactivateCommand(group string, lvs ...string) run.Command {
	return t.command("lvchange", append([]string{"--yes", "--activate", "n"}, within(group, lvs)...)...)
}

// NodesCommand makes the nodes of an active volume anew. It tells LVM to make them itself, since
// udev does not touch nodes that it did not make.
func (t Tool) NodesCommand(group, id string) run.Command {
	t.Udev = false
	return t.command("vgmknodes", group+"/"+id)
}

// ResumeCommand loads the tables that LVM has recorded of volumes into the kernel, and resumes
// the volumes.
func (t Tool) ResumeCommand(group string, ids ...string) run.Command {
	return t.command("lvchange", append([]string{"--yes", "--refresh"}, within(group, ids)...)...)
}

func bytes(size int64) string { return strconv.FormatInt(size, 10) + "b" }

// within names logical volumes of a group as LVM does.
func within(group string, ids []string) (names []string) {
	for _, id := range ids {
		names = append(names, group+"/"+id)
	}
	return names
}
