package poold

import (
	"context"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Pools has all the calls that the agent makes about its node's pools.
type Pools interface {
	provision.Full
	provision.Manager
}

// Node has all the calls that the agent makes about its node's disks.
type Node interface {
	Pools
	provision.Replicators
	mount.Mounter
}

type local struct {
	Pools
	mount.Mounter
}

// Warnings implements provision.Warner.
func (l local) Warnings() []provision.Warning { return provision.WarningsOf(l.Pools) }

// ReplicatorOf implements provision.Replicators.
func (l local) ReplicatorOf(ctx context.Context, poolType string) (provision.Replicator, error) {
	return provision.ReplicatorOf(ctx, l.Pools, poolType)
}

// NewLocal makes a Node in this process.
func NewLocal(p Pools, m mount.Mounter) Node { return local{p, m} }
