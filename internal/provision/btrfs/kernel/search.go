package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"berth.dev/berth/internal/provision/blockdev"
)

// Found is a filesystem on some disks. Twins names two disks that say that they are the same disk of
// it, so that one must be a copy; empty if there are none.
type Found struct {
	FSID  string
	Nodes []string
	Twins string
}

// The superblock of btrfs: where it is on a disk, and its parts that are read.
const (
	superblockAt = 64 << 10
	fsidAt       = 0x20
	magicAt      = 0x40
	magic        = "_BHRfS_M"
	diskAt       = 0xc9
	labelAt      = 0x12b
	labelLength  = 256
)

// part is a disk of a filesystem.
type part struct {
	fsid string
	disk uint64
}

// Search returns the filesystems of a label that are on some disks. If one of the disks is a copy of another, none is to
// be mounted: the kernel would take one of the two.
func Search(nodes []string, label string) (found []Found) {
	parts := map[part]string{}
	twins := ""
	for _, node := range nodes {
		p, ok := superblock(node, label)
		if !ok {
			continue
		}
		if other := parts[p]; other != "" && !same(other, node) {
			twins = other + " and " + node
		}
		parts[p] = node
		i := slices.IndexFunc(found, func(f Found) bool { return f.FSID == p.fsid })
		if i < 0 {
			i, found = len(found), append(found, Found{FSID: p.fsid})
		}
		found[i].Nodes = append(found[i].Nodes, node)
	}
	for i := range found {
		found[i].Twins = twins
	}
	return found
}

// same says whether two nodes lead to one disk.
func same(a, b string) bool {
	one, err := blockdev.Number(a)
	two, failure := blockdev.Number(b)
	return errors.Join(err, failure) == nil && one == two
}

// superblock reads which disk of which filesystem of a label a disk is; false if it is none or
// cannot be read.
func superblock(node, label string) (p part, ok bool) {
	f, err := os.Open(node)
	if err != nil {
		return p, false
	}
	defer f.Close()
	b := make([]byte, 4096)
	if _, err := f.ReadAt(b, superblockAt); err != nil || string(b[magicAt:][:len(magic)]) != magic {
		return p, false
	}
	has, _, _ := bytes.Cut(b[labelAt:][:labelLength], []byte{0})
	return part{uuid([16]byte(b[fsidAt:])), binary.LittleEndian.Uint64(b[diskAt:])}, string(has) == label
}
