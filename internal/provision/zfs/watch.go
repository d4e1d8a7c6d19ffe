package zfs

import (
	"context"

	"berth.dev/berth/internal/provision/engine"
)

// Run watches for changes by others until ctx ends, then waits for the changes under
// way. Without it only own changes are signalled.
//
// It sees in the kernel's own files, without a process, which zpools come, go, fail or
// recover. ZFS tells of changes within a zpool only to a process that keeps running, so
// Run reads the zpools again now and then instead.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.Wait()
	look := func(context.Context) {
		// If the zpools cannot be listed, the next report returns the error.
		if pools, err := p.config.Devices.Pools(); err == nil && p.state.notice(pools) {
			p.engine.Changed.Set()
		}
	}
	p.engine.Watch(ctx, engine.Watch{Look: look, Interval: watchInterval, Refresh: p.config.RefreshInterval, Pools: p.state.pools})
	return nil
}
