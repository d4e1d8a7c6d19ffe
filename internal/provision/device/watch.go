package device

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/provision"
)

// watcher notices changes by others.
type watcher struct {
	*reader
	// reported is set by each report and taken back by Run, which asks the kernel itself
	// only if no report did meanwhile.
	reported atomic.Bool
}

// Run watches for changes by others and wipes the disks of deleted volumes, until ctx
// ends; then it waits for the changes under way. Without it only own changes are
// signalled, and no disk becomes free again.
func (p *Provisioner) Run(ctx context.Context) error {
	defer p.watcher.letGoAll()
	defer p.Wait()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return p.config.Disks.Watch(ctx, p.watcher.watching, p.watcher.written) })
	work.Go(func() error {
		p.watcher.tick(ctx)
		return nil
	})
	work.Go(func() error {
		p.wiper.wipeAll(ctx, &p.tasks)
		return nil
	})
	return work.Wait()
}

// letGoAll closes every partition that is kept. It waits no longer for a disk than a report does.
func (w *watcher) letGoAll() {
	late := time.NewTimer(readTimeout)
	defer late.Stop()
	select {
	case <-w.letGo(func(string) bool { return false }):
	case <-late.C:
	}
}

// watching is called once the watch misses nothing any more. Writes since an earlier report
// may have been missed.
func (w *watcher) watching() {
	w.state.ChangedAll()
	w.changed.Set()
}

// written is called when a writer closed a device, or when it came or went. Only whole
// disks matter: a write to a partition of Berth's is its user's data.
func (w *watcher) written(path string) {
	name := filepath.Base(path)
	if w.state.written(name) {
		w.changed.Set()
		return
	}
	if _, ok := w.config.Disks.Find(name); ok {
		w.changed.Set()
	}
}

// tick asks the kernel for its disks often, unless reports do: a report itself tells what
// is new. It reads all disks again now and then, in case a change was missed.
func (w *watcher) tick(ctx context.Context) {
	// Disks that are to be wiped must be found even if no caller asks for a report. If this
	// fails, it is tried again.
	_ = w.refresh(ctx)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	refresh := time.NewTicker(refreshInterval)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if !w.reported.Swap(false) {
				w.notice()
			}
			if w.state.retryWipes(provision.ErrInUse) { // another process had the disk open just then
				w.nudge()
			}
		case <-refresh.C:
			w.state.ChangedAll()
			w.state.retryWipes()
			_ = w.refresh(ctx)
			w.changed.Set()
		}
	}
}

// notice asks the kernel for its disks, and signals a change if anything is new.
func (w *watcher) notice() {
	if changed, err := w.list(); err != nil || changed {
		w.changed.Set()
	}
}
