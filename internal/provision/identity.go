package provision

import (
	"context"
	"fmt"
	"strings"
)

// Identity tells the block device of a volume from all others, by data of the kernel itself. A
// path does not prove which device it leads to: a node or a link may remain of a device that
// is gone, and another device may have its number by now. So code that opens a volume's device
// lets package blockdev compare it with the identity before any use. An identity is compared
// and shown, never parsed, and is valid until the machine restarts. A tree of ZFS has none: ZFS
// mounts it by its name. One of btrfs has that of its subvolume.
type Identity string

// MappedIdentity is the identity of a device-mapper device. It needs both: another device can
// have taken the name, and the device of the UUID can have been renamed.
func MappedIdentity(name, uuid string) Identity {
	return Identity("dm:" + name + " " + uuid)
}

// ZvolIdentity is the identity of a zvol, by the name that the device itself reports.
func ZvolIdentity(dataset string) Identity { return zvolScheme + Identity(dataset) }

const zvolScheme = "zvol:"

// NeedsOpening says whether only opening the device proves its identity: the kernel says nowhere
// else which zvol a device is.
func (i Identity) NeedsOpening() bool { return strings.HasPrefix(string(i), zvolScheme) }

// PartitionIdentity is the identity of a partition: its start and length in bytes, and its disk.
// The disk is named by its sequence number, which no other disk has until the machine restarts,
// and by its own identity, for kernels that do not number disks.
func PartitionIdentity(sequence, disk string, start, length int64) Identity {
	return Identity(fmt.Sprintf("part:%d+%d of disk %s %s", start, length, sequence, disk))
}

// Mkfs makes a filesystem on the device of a volume, over whatever it holds, with options of
// mkfs or none. It proves first that the device is the volume's. It must not be killed while
// it runs. A provisioner calls it once the record says that the device is blank.
type Mkfs func(ctx context.Context, v Volume, filesystem, options string) error

// WholeIdentity is the identity of a whole disk: its sequence number, which no other disk has until the
// machine restarts, and what it says of itself. A loop device says that it is one.
func WholeIdentity(sequence, disk string) Identity {
	return Identity(fmt.Sprintf("disk:%s %s", sequence, disk))
}
