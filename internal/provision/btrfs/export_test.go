package btrfs

import "berth.dev/berth/internal/provision"

// Want notes that a class names a pool, as Ensure does, and looks for nothing yet.
func (p *Provisioner) Want(pool provision.PoolRef) { p.want(pool) }
