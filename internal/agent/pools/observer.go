// Package pools keeps the latest report of a node's pools for those who act on
// it: the publisher, the replica worker, the health endpoints. It works without
// the API server.
package pools

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/provision"
)

const (
	// patience is how long a report may take. It is more than the node's provisioners are
	// waited for: who hangs is told by a report of the others.
	patience = 30 * time.Second
	// probe is how often the provisioner is asked when nothing changes: to notice
	// that it hangs, and a change whose signal was lost.
	probe = 10 * time.Second
	// retry is how soon it is asked again after it failed.
	retry = time.Second
)

// Reporter is the part of a provisioner that is observed.
type Reporter interface {
	Report(ctx context.Context) ([]provision.Pool, error)
	Changed() <-chan struct{}
}

// Snapshot is what was last heard of the pools.
type Snapshot struct {
	// Pools of the last report that told of any.
	Pools []provision.Pool
	// Warnings that came with it.
	Warnings []provision.Warning
	// Err is why the latest report told of none, or nil.
	Err error
	// Silent is nil, or which pools could not be asked for the latest report: of those Pools
	// has what is known, or nothing.
	Silent error
}

// Observer asks for a report at each change and now and then.
type Observer struct {
	reporter Reporter
	clock    clock.Clock
	log      logr.Logger

	doubted  chan struct{}
	reported chan struct{} // closed by the first report that tells of pools
	once     sync.Once

	mu          sync.Mutex
	latest      Snapshot
	deleted     map[string]bool // since the latest report
	subscribers []chan struct{}
}

// NewObserver returns an observer that works once Start is called.
func NewObserver(r Reporter, c clock.Clock, log logr.Logger) *Observer {
	return &Observer{reporter: r, clock: c, log: log, doubted: make(chan struct{}, 1), reported: make(chan struct{}), latest: Snapshot{Err: provision.ErrUnavailable}, deleted: map[string]bool{}}
}

// Reported is closed once the provisioner has reported.
func (o *Observer) Reported() <-chan struct{} { return o.reported }

// Doubt says that an operation met a provisioner that did not work: it is asked
// at once. Doubt never blocks.
func (o *Observer) Doubt() {
	select {
	case o.doubted <- struct{}{}:
	default:
	}
}

// Latest returns the latest snapshot. Its error is not nil before the first report.
func (o *Observer) Latest() Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// Deleted notes that a volume or a snapshot was deleted here, which the latest snapshot may
// still show.
//
// It is not taken out of the snapshot: what it held may have to be wiped before its room is
// free, and only a report tells both at once.
func (o *Observer) Deleted(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deleted[id] = true
}

// Gone says whether something was deleted here since the latest report, so that nobody need
// look for it: a provisioner may have to start a process to be sure that it is not there. A
// report that was asked for before the deletion and came after it shows it once more.
func (o *Observer) Gone(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deleted[id]
}

// Subscribe returns a channel that is signalled after each report until done is
// called. A subscriber that is behind gets one signal for many reports.
func (o *Observer) Subscribe() (signals <-chan struct{}, done func()) {
	c := make(chan struct{}, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subscribers = append(o.subscribers, c)
	return c, func() { o.unsubscribe(c) }
}

func (o *Observer) unsubscribe(c chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, s := range o.subscribers {
		if s == c {
			o.subscribers = append(o.subscribers[:i:i], o.subscribers[i+1:]...)
			return
		}
	}
}

// Start observes until the context ends.
func (o *Observer) Start(ctx context.Context) error {
	for {
		wait := probe
		if err := o.report(ctx); err != nil {
			wait = retry
		}
		timer := o.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-o.reporter.Changed():
		case <-o.doubted:
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (o *Observer) report(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pools, err := o.reporter.Report(bounded)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.store(pools, err)
	return err
}

func (o *Observer) store(pools []provision.Pool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if before := o.latest; err != nil && before.Err == nil && before.Silent == nil {
		o.log.Error(err, "pools cannot be listed")
	}
	if err != nil && len(pools) == 0 {
		o.latest.Err = err
	} else {
		o.latest = Snapshot{Pools: pools, Warnings: provision.WarningsOf(o.reporter), Silent: err}
		clear(o.deleted)
		o.once.Do(func() { close(o.reported) })
	}
	for _, c := range o.subscribers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
