package lvm

import (
	"strings"

	"berth.dev/berth/internal/run"
)

// The commands that make groups and pools, and let them grow.

// makeGroupCommand makes a volume group with its tag, and with that the physical volumes:
// in one process, so that no disk is left that is Berth's and bears no mark of it.
// Nobody says yes to LVM, which asks before it takes a disk that bears a signature: no
// answer means no.
func (c Config) makeGroupCommand(group string, nodes []string) run.Command {
	return c.command("vgcreate", append([]string{"--metadatasize", bytes(ampleArea), "--addtag", tagManaged + group, group}, nodes...)...)
}

// growGroupCommand adds disks to a volume group, likewise.
func (c Config) growGroupCommand(group string, nodes []string) run.Command {
	return c.command("vgextend", append([]string{"--metadatasize", bytes(ampleArea), group}, nodes...)...)
}

// makePoolCommand makes a thin pool. What it hands out is zeroed first.
func (c Config) makePoolCommand(pool string, l layout) run.Command {
	group, thin, _ := strings.Cut(pool, "/")
	return c.command("lvcreate", "--yes", "--type", "thin-pool", "--zero", "y",
		"--size", bytes(l.data), "--poolmetadatasize", bytes(l.metadata), "--chunksize", bytes(l.chunk),
		"--addtag", tagManaged+thin, "--name", thin, group)
}

// extendDataCommand makes the data of a thin pool so large.
func (c Config) extendDataCommand(pool string, size int64) run.Command {
	return c.command("lvextend", "--yes", "--size", bytes(size), pool)
}

// extendMetadataCommand makes the metadata of a thin pool larger by so much.
func (c Config) extendMetadataCommand(pool string, more int64) run.Command {
	return c.command("lvextend", "--yes", "--poolmetadatasize", "+"+bytes(more), pool)
}
