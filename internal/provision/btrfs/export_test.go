package btrfs

import "berth.dev/berth/internal/provision"

// Want notes that a class names a pool, as Ensure does, and looks for nothing yet.
func (p *Provisioner) Want(pool provision.PoolRef) { p.want(pool) }

// Touch notes that others may have changed a filesystem, as a look at the kernel would.
func (p *Provisioner) Touch(fsid string) {
	p.engine.With(fsid, func(u *facts) { p.engine.Touch(u) })
}
