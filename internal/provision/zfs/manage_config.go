package zfs

import "context"

// Lender lends whole disks that are empty; package device has one.
type Lender interface {
	// Lend calls take with the nodes of those of the disks that are proved to be empty, if
	// there are any, and returns why the others are not lent.
	Lend(ctx context.Context, disks []string, take func(nodes []string) error) (refused []error, err error)
}

// Labels is what must be known before zpools are made of disks.
type Labels interface {
	// Alias is a name of a disk's node that it keeps when it is plugged in again; the node
	// itself if it has none.
	Alias(node string) string

	// Udev says whether udev is at work. zpool waits for it after it labelled a disk, and
	// without it gives up when that is done.
	Udev() bool
}
