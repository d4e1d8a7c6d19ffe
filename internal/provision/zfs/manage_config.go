package zfs

import "context"

// Lender lends whole disks that are empty; package device has one.
type Lender interface {
	// Lend proves which of the disks are empty, and calls take with their nodes if there are
	// any. It returns why the others are not lent.
	Lend(ctx context.Context, disks []string, take func(nodes []string) error) (refused []error, err error)
}

// Labels tells the manager how to name disks, and whether udev is at work.
type Labels interface {
	// Alias returns a name of a disk's node that the disk keeps when it is plugged in again;
	// the node itself if there is none.
	Alias(node string) string

	// Udev says whether udev is at work. The program zpool labels a disk and then waits for
	// udev: without udev it gives up, and the disk is labelled.
	Udev() bool
}
