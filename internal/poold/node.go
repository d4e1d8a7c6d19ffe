package poold

import (
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Node is everything the agent asks of its node's disks.
type Node interface {
	provision.Full
	mount.Mounter
}

type local struct {
	provision.Full
	mount.Mounter
}

// NewLocal is a Node in this process.
func NewLocal(p provision.Full, m mount.Mounter) Node { return local{p, m} }
