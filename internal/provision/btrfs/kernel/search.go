package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"berth.dev/berth/internal/provision/blockdev"
)

// Found is a filesystem on a disk. Twins names two disks that say that they are the same disk of
// it, so that one must be a copy; empty if there are none.
type Found struct{ FSID, Node, Twins string }

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

// Search returns the filesystems of a label that are on some disks, and makes these known to the
// kernel, which can then find all disks of a filesystem. If one of the disks is a copy of another,
// Search makes none known: the kernel would take one of the two.
func Search(nodes []string, label string) (found []Found, err error) {
	parts := map[part]string{}
	var known []string
	twins := ""
	for _, node := range nodes {
		p, ok := superblock(node, label)
		if !ok {
			continue
		}
		if other := parts[p]; other != "" && !same(other, node) {
			twins = other + " and " + node
		}
		parts[p], known = node, append(known, node)
		if !slices.ContainsFunc(found, func(f Found) bool { return f.FSID == p.fsid }) {
			found = append(found, Found{FSID: p.fsid, Node: node})
		}
	}
	if twins != "" {
		for i := range found {
			found[i].Twins = twins
		}
		return found, nil
	}
	for _, node := range known {
		if err := makeKnown(node); err != nil {
			return nil, fmt.Errorf("making %s known to btrfs: %w", node, err)
		}
	}
	return found, nil
}

// same says whether two nodes lead to one disk.
func same(a, b string) bool {
	one, err := blockdev.Number(a)
	two, failure := blockdev.Number(b)
	return errors.Join(err, failure) == nil && one == two
}

func makeKnown(node string) error {
	control, err := os.OpenFile("/dev/btrfs-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = ioctl(control, write, doScan, named(node))
	return errors.Join(err, control.Close())
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
