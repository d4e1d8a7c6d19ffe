package provision

import (
	"context"
	"fmt"
	"strings"
)

// Identity is by what the kernel itself knows the block device of a volume. A path does not
// prove that: a node or a link may be left of a device that is gone, and its number may be
// another's by now. Whoever opens a volume's device compares what is open with its
// identity before anything is done with it; package blockdev does. It is compared and shown,
// never taken apart, and holds for as long as the machine runs. A dataset has none: ZFS
// mounts it by its name.
type Identity string

// MappedIdentity is that of a device-mapper device. The name alone can have passed to another
// device, and the uuid alone can have been renamed.
func MappedIdentity(name, uuid string) Identity {
	return Identity("dm:" + name + " " + uuid)
}

// ZvolIdentity is that of a zvol, by the name that the device itself tells.
func ZvolIdentity(dataset string) Identity { return zvolScheme + Identity(dataset) }

const zvolScheme = "zvol:"

// IsZvol says whether it can be proved by opening the device alone.
func (i Identity) IsZvol() bool { return strings.HasPrefix(string(i), zvolScheme) }

// PartitionIdentity is that of a partition: its place in bytes, on the disk of a sequence
// number, which no other disk bears until the machine is started anew, and of an identity,
// for kernels that do not number disks.
func PartitionIdentity(sequence, disk string, start, length int64) Identity {
	return Identity(fmt.Sprintf("part:%d+%d of disk %s %s", start, length, sequence, disk))
}

// Mkfs makes a filesystem on the device of a volume, over whatever it holds, with options of
// mkfs or none. It proves first that the device is the volume's. It must not be killed in the
// middle and is called once the record says that the device is blank.
type Mkfs func(ctx context.Context, v Volume, filesystem, options string) error
