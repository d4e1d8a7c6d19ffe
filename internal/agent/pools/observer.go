// Package pools keeps the latest report of a node's pools for the parts that act on
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
	"berth.dev/berth/internal/signal"
)

const (
	// patience is how long a report may take. It is longer than the node waits for each
	// provisioner, so that the report still has the others and names the one that hangs.
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

// Latest is the report that the provisioners gave last.
type Latest struct {
	// Pools of the last report that did not fail as a whole.
	Pools []provision.Pool
	// Warnings that came with it.
	Warnings []provision.Warning
	// Err is why the latest report failed as a whole, or nil.
	Err error
	// Silent is nil, or says which pools did not answer for the latest report: Pools has
	// their last known state, or lacks them.
	Silent error
}

// Observer asks for a report at each change and now and then.
type Observer struct {
	reporter Reporter
	clock    clock.Clock
	log      logr.Logger

	toolFailed signal.Signal
	reported   chan struct{} // closed by the first report that did not fail as a whole
	once       sync.Once

	mu          sync.Mutex
	latest      Latest
	deleted     map[string]bool // since the latest report
	subscribers []signal.Signal
}

// NewObserver returns an observer that works once Start is called.
func NewObserver(r Reporter, c clock.Clock, log logr.Logger) *Observer {
	return &Observer{reporter: r, clock: c, log: log, toolFailed: signal.New(), reported: make(chan struct{}), latest: Latest{Err: provision.ErrUnavailable}, deleted: map[string]bool{}}
}

// Reported returns a channel that is closed once the provisioner has reported.
func (o *Observer) Reported() <-chan struct{} { return o.reported }

// ToolFailed tells the observer that an operation met a provisioner that did not work. The
// observer asks for a report at once. ToolFailed never blocks.
func (o *Observer) ToolFailed() {
	o.toolFailed.Set()
}

// Latest returns the latest report. Its error is not nil before the first report.
func (o *Observer) Latest() Latest {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// Deleted notes that a volume or a snapshot was deleted here, which the latest report may
// still show.
//
// Deleted does not take it out of that report: its room may have to be wiped before it is
// free, and only a new report tells both at once.
func (o *Observer) Deleted(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deleted[id] = true
}

// Gone says whether a volume or a snapshot was deleted here since the latest report. Then no
// worker need look for it: a provisioner may have to start a process to be sure that it is not
// there. A report that began before the deletion and ended after it shows it once more.
func (o *Observer) Gone(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deleted[id]
}

// Subscribe returns a channel that is signalled after each report until done is
// called. A subscriber that is behind gets one signal for many reports.
func (o *Observer) Subscribe() (signals <-chan struct{}, done func()) {
	c := signal.New()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subscribers = append(o.subscribers, c)
	return c, func() { o.unsubscribe(c) }
}

func (o *Observer) unsubscribe(c signal.Signal) {
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
		case <-o.toolFailed:
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
		o.latest = Latest{Pools: pools, Warnings: provision.WarningsOf(o.reporter), Silent: err}
		clear(o.deleted)
		o.once.Do(func() { close(o.reported) })
	}
	for _, c := range o.subscribers {
		c.Set()
	}
}
