package zfs

import (
	"context"
	"reflect"
	"time"

	"berth.dev/berth/internal/provision"
)

// Run watches for changes by others until ctx ends, then waits for the changes under
// way. Without it only own changes are signalled.
//
// It sees in the kernel's own files, without a process, which zpools come, go, fail or
// recover. ZFS tells of changes within a zpool only to a process that keeps running, so
// Run reads the zpools again now and then instead.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.Wait()
	refresh := time.NewTicker(p.config.RefreshInterval)
	defer refresh.Stop()
	watch := time.NewTicker(watchInterval)
	defer watch.Stop()
	p.engine.ChangedAll() // they may have changed since an earlier report
	p.engine.Changed.Set()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watch.C:
			// If the zpools cannot be listed, the next report returns the error.
			if pools, err := p.config.Devices.Pools(); err == nil && p.state.notice(pools) {
				p.engine.Changed.Set()
			}
		case <-refresh.C:
			p.readAgain(ctx)
		}
	}
}

// readAgain reads all zpools again, also those that did not answer, and signals a change
// if there is one.
func (r *reader) readAgain(ctx context.Context) {
	before := r.state.pools(time.Time{})
	r.engine.ChangedAll()
	r.engine.RefreshEach(ctx, r.engine.Names())
	if r.changedSince(before) {
		r.engine.Changed.Set()
	}
}

func (r *reader) changedSince(before []provision.Pool) bool {
	return !reflect.DeepEqual(before, r.state.pools(time.Time{}))
}
