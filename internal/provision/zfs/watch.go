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
// Zpools that come, go, fail or recover are seen in the kernel's own files, without a
// process. What happens within a zpool ZFS tells only to a process that stays, so it
// is read again now and then instead.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.Wait()
	refresh := time.NewTicker(p.config.RefreshInterval)
	defer refresh.Stop()
	watch := time.NewTicker(p.config.WatchInterval)
	defer watch.Stop()
	p.state.staleAll() // what changed since an earlier report
	p.signal()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watch.C:
			// What cannot be listed is the next report's error.
			if pools, err := p.config.Devices.Pools(); err == nil && p.state.notice(pools) {
				p.signal()
			}
		case <-refresh.C:
			p.readAgain(ctx)
		}
	}
}

// readAgain reads all zpools again and signals what is news. A zpool that did not
// answer is asked again, too.
func (p *Provisioner) readAgain(ctx context.Context) {
	before := p.state.pools(time.Time{})
	p.state.staleAll()
	p.refreshEach(ctx, p.state.names())
	if p.changedSince(before) {
		p.signal()
	}
}

func (p *Provisioner) changedSince(before []provision.Pool) bool {
	return !reflect.DeepEqual(before, p.state.pools(time.Time{}))
}
