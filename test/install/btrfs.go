package install

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/test/cluster"
)

// BtrfsPath is where MakeBtrfs mounts the filesystem of a label.
func BtrfsPath(label string) string { return "/srv/" + label }

// MakeBtrfs makes a filesystem with simple quotas on the last disk of a native node, as an administrator does,
// mounts it, and returns the disk. The node is a part of this machine, so the disk has the same name here. The
// btrfs-progs of the machine may be older than simple quotas, so the quotas are not enabled by a command.
func MakeBtrfs(ctx context.Context, lab cluster.Lab, n Node, label string) (disk string, err error) {
	if len(n.Disks) == 0 {
		return "", fmt.Errorf("node %s has no data disk: start the lab with --disks 2", n.Name)
	}
	disk, id := n.Disks[len(n.Disks)-1].Device, uuid.NewString()
	if _, err := lab.OnNode(ctx, n.Name, "mkfs.btrfs", "--quiet", "--force", "--label", label, "--uuid", id, disk); err != nil {
		return "", err
	}
	f, err := kernel.Bring(disk, id)
	if err != nil {
		return "", err
	}
	err = f.EnableQuotas()
	f.Close()
	if err != nil {
		return "", fmt.Errorf("enabling simple quotas on %s: %w", disk, err)
	}
	path := BtrfsPath(label)
	_, err = lab.OnNode(ctx, n.Name, "sh", "-c", "mkdir -p "+path+" && mount "+disk+" "+path)
	return disk, err
}
