package zfs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/reading"
	"berth.dev/berth/internal/run"
)

var errNoAnswer = errors.New("no answer in time")

// load reads all zpools if that was never done.
func (p *Provisioner) load(ctx context.Context) error {
	p.state.mu.Lock()
	loaded := p.state.loaded
	p.state.mu.Unlock()
	if loaded {
		return nil
	}
	return p.refreshDue(ctx)
}

// lookForVolumes reads the zpools again if the kernel shows a zvol that is not known:
// each of Berth's has a device. So nodes whose zpools are for something else pay
// nothing for volumes that are elsewhere. It does not show datasets: where Berth has some,
// it is looked again.
func (p *Provisioner) lookForVolumes(ctx context.Context) error {
	if err := p.refreshDue(ctx); err != nil { // with zpools that just came
		return err
	}
	behind := p.state.staleDatasets(p.config.Now().Add(-recent))
	if !p.shown() {
		behind = true
		p.state.staleAll()
	}
	if !behind {
		return nil
	}
	return p.refreshDue(ctx)
}

// lookForSnapshots reads the zpools again that may hold any: those with volumes of Berth's.
func (p *Provisioner) lookForSnapshots(ctx context.Context) error {
	if err := p.lookForVolumes(ctx); err != nil {
		return err
	}
	p.state.staleOurs(p.config.Now().Add(-recent))
	return p.refreshDue(ctx)
}

// recent is what is known of snapshots if it is no older: whoever takes one asks several
// times in a row whether it is there.
const recent = 2 * time.Second

// shown says whether all zvols are known.
func (p *Provisioner) shown() bool {
	zvols, err := p.config.Devices.Zvols()
	return err == nil && p.state.knows(zvols)
}

// refreshDue reads what is stale. Callers at the same time share one reading. A zpool
// that is known and that a change keeps locked is left out: the change keeps what is known
// of it, and is followed by a signal.
func (p *Provisioner) refreshDue(ctx context.Context) error {
	unlock, err := p.reports.Lock(ctx, "")
	if err != nil {
		return err
	}
	defer unlock()
	pools, err := p.config.Devices.Pools()
	if err != nil {
		return fmt.Errorf("%w: listing zpools: %w", provision.ErrUnavailable, err)
	}
	if p.state.notice(pools) {
		p.signal()
	}
	p.checkTools(ctx)
	p.refreshEach(ctx, p.state.due())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.state.mu.Lock()
	p.state.loaded = true
	p.state.mu.Unlock()
	p.tidyOnce.Do(func() { p.tidyEach(ctx) }) // a crash may have left something
	return nil
}

// refreshEach reads zpools at the same time.
func (p *Provisioner) refreshEach(ctx context.Context, names []string) {
	var readers sync.WaitGroup
	for _, name := range names {
		readers.Go(func() {
			unlock, err := p.lockToRead(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			if p.state.isBehind(name) { // nobody was faster
				p.refresh(ctx, name)
			}
		})
	}
	readers.Wait()
}

// lockToRead waits for whoever reads a zpool for the first time, and for nobody else.
func (p *Provisioner) lockToRead(ctx context.Context, name string) (unlock func(), err error) {
	unread := false
	p.state.with(name, func(z *zpool) { unread = z != nil && z.read.IsZero() })
	if unread {
		return p.zpools.Lock(ctx, name)
	}
	return p.zpools.TryLock(name)
}

// refresh reads one zpool, for who holds its lock. Whatever comes of it is in the
// state. A zpool that is suspended is not asked: whoever asks might never return.
func (p *Provisioner) refresh(ctx context.Context, name string) {
	var asked reading.Moment
	p.state.with(name, func(z *zpool) {
		if z != nil && z.answers(p.config.Now()) == nil && !z.asking {
			z.asking, asked = true, p.state.clock.Now()
		}
	})
	if asked == 0 {
		return
	}
	z, err := p.query(ctx, name)
	if err == nil {
		p.state.apply(z, asked, p.config.Now())
		p.state.with(name, p.seeClutter)
		return
	}
	p.state.with(name, func(z *zpool) {
		if z != nil && ctx.Err() == nil {
			z.silent = err
			z.reading.Changed(p.state.clock.Now())
		}
	})
}

// query asks ZFS for a report of a zpool. Snapshots matter only where Berth has volumes,
// and elsewhere there may be thousands.
func (p *Provisioner) query(ctx context.Context, name string) (*zpool, error) {
	whole := true
	p.state.with(name, func(z *zpool) { whole = z == nil || z.read.IsZero() || len(z.datasets) > 0 })
	z, err := p.list(ctx, name, whole)
	if err == nil && !whole && len(z.datasets) > 0 {
		return p.list(ctx, name, true)
	}
	return z, err
}

// askOf asks something of a zpool. As long as it has no answer nobody asks again.
func (p *Provisioner) askOf(ctx context.Context, name string, c run.Command) ([]byte, error) {
	asking := func(yes bool) {
		p.state.with(name, func(z *zpool) {
			if z != nil {
				z.asking = yes
			}
		})
	}
	asking(true)
	return p.ask(ctx, c, func() { asking(false) })
}

func (p *Provisioner) list(ctx context.Context, name string, snapshots bool) (*zpool, error) {
	out, err := p.askOf(ctx, name, p.config.listCommand(name, snapshots))
	if err != nil {
		return nil, fmt.Errorf("asking ZFS for a report: %w", err)
	}
	rows, err := parse(out)
	if err != nil {
		return nil, err
	}
	return newZpool(rows)
}
