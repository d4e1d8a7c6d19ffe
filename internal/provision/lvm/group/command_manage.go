package group

import (
	"strings"

	"berth.dev/berth/internal/run"
)

// The commands that make groups and pools, and let them grow.

// makeGroupCommand makes a volume group with its tag, and with it the physical volumes. One
// process makes both, so that no disk of Berth's is left without a mark. LVM asks before it takes
// a disk that bears a signature. Berth gives no answer, which LVM takes as no.
func (t Tool) makeGroupCommand(group string, nodes []string) run.Command {
	return t.command("vgcreate", append([]string{"--metadatasize", bytes(ampleArea), "--addtag", tagManaged + group, group}, nodes...)...)
}

// growGroupCommand adds disks to a volume group. Berth gives no answer here either.
func (t Tool) growGroupCommand(group string, nodes []string) run.Command {
	return t.command("vgextend", append([]string{"--metadatasize", bytes(ampleArea), group}, nodes...)...)
}

// makePoolCommand makes a thin pool, which zeroes blocks before it hands them out.
func (t Tool) makePoolCommand(pool string, l layout) run.Command {
	group, thin, _ := strings.Cut(pool, "/")
	return t.command("lvcreate", "--yes", "--type", "thin-pool", "--zero", "y",
		"--size", bytes(l.data), "--poolmetadatasize", bytes(l.metadata), "--chunksize", bytes(l.chunk),
		"--addtag", tagManaged+thin, "--name", thin, group)
}

// extendMetadataCommand extends the metadata of a thin pool by a number of bytes.
func (t Tool) extendMetadataCommand(pool string, more int64) run.Command {
	return t.command("lvextend", "--yes", "--poolmetadatasize", "+"+bytes(more), pool)
}
