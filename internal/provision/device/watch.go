package device

import (
	"context"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/provision"
)

// Run watches for changes by others and wipes what deleted volumes left, until ctx
// ends; then it waits for the changes under way. Without it only own changes are
// signalled, and no disk becomes free again.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.letGoAll()
	defer p.Wait()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return p.config.Disks.Watch(ctx, p.watching, p.written) })
	work.Go(func() error {
		p.tick(ctx)
		return nil
	})
	work.Go(func() error {
		p.wipeAll(ctx)
		return nil
	})
	return work.Wait()
}

// letGoAll closes every partition that is kept, and waits no longer for a disk than a report.
func (p *Provisioner) letGoAll() {
	late := time.NewTimer(p.config.ReadTimeout)
	defer late.Stop()
	select {
	case <-p.letGo(func(string) bool { return false }):
	case <-late.C:
	}
}

// watching is told that from now on nothing escapes notice. What was written since an
// earlier report may have.
func (p *Provisioner) watching() {
	p.state.staleAll()
	p.signal()
}

// written is told that somebody wrote to a device, or that it came or went. Only whole
// disks matter: what is written to a partition of Berth's is its user's data.
func (p *Provisioner) written(path string) {
	name := filepath.Base(path)
	if p.state.written(name) {
		p.signal()
		return
	}
	if _, ok := p.config.Disks.Find(name); ok {
		p.signal()
	}
}

// tick asks the kernel for its disks often, unless reports do, which tell of what is new
// themselves; and it reads all of them again now and then, in case a change escaped
// notice.
func (p *Provisioner) tick(ctx context.Context) {
	// Disks that are to be wiped must be found though nobody asks for a report. What
	// fails is tried again.
	_ = p.refresh(ctx)
	look := time.NewTicker(p.config.LookInterval)
	defer look.Stop()
	refresh := time.NewTicker(p.config.RefreshInterval)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if !p.reported.Swap(false) {
				p.notice()
			}
			if p.state.retryWipes(provision.ErrInUse) { // somebody looked at the disk just then
				p.nudge()
			}
		case <-refresh.C:
			p.state.staleAll()
			p.state.retryWipes()
			_ = p.refresh(ctx)
			p.signal()
		}
	}
}

// notice asks the kernel for its disks, and signals what is new.
func (p *Provisioner) notice() {
	if changed, err := p.list(); err != nil || changed {
		p.signal()
	}
}

// wipeAll wipes every disk that a deleted volume left, all at the same time.
func (p *Provisioner) wipeAll(ctx context.Context) {
	for {
		for pool, w := range p.state.toWipe() {
			p.tasks.Go(func() { p.wipe(ctx, pool, w) })
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wipes:
		}
	}
}
