package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Found is a filesystem on a disk.
type Found struct{ FSID, Node string }

// The superblock of btrfs: where it is on a disk, and its parts that are read.
const (
	superblockAt = 64 << 10
	fsidAt       = 0x20
	magicAt      = 0x40
	magic        = "_BHRfS_M"
	labelAt      = 0x12b
	labelLength  = 256
)

// Search returns the filesystems of a label that are on some disks, and makes these known to the
// kernel, which can then find all disks of a filesystem.
func Search(nodes []string, label string) (found []Found, err error) {
	for _, node := range nodes {
		fsid, ok := superblock(node, label)
		if !ok {
			continue
		}
		control, err := os.OpenFile("/dev/btrfs-control", os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("making disks known to btrfs: %w", err)
		}
		err = ioctl(control, write, doScan, named(node))
		if err = errors.Join(err, control.Close()); err != nil {
			return nil, fmt.Errorf("making %s known to btrfs: %w", node, err)
		}
		if !slices.ContainsFunc(found, func(f Found) bool { return f.FSID == fsid }) {
			found = append(found, Found{fsid, node})
		}
	}
	return found, nil
}

// superblock reads the UUID of a filesystem of a label; false if a disk has none or cannot be read.
func superblock(node, label string) (fsid string, ok bool) {
	f, err := os.Open(node)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b := make([]byte, 4096)
	if _, err := f.ReadAt(b, superblockAt); err != nil || string(b[magicAt:][:len(magic)]) != magic {
		return "", false
	}
	has, _, _ := bytes.Cut(b[labelAt:][:labelLength], []byte{0})
	return uuid([16]byte(b[fsidAt:])), string(has) == label
}
