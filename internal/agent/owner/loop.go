package owner

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	// beat is how often the volumes in use are looked at, and the guard is asked.
	beat = time.Second
	// tenders is how many volumes are tended at once.
	tenders = 8
	// A volume whose upkeep failed is tended again after at least and at most this long.
	minRetry = 100 * time.Millisecond
	maxRetry = 30 * time.Second
)

// Loop tends the volumes of an Owner outside of the kubelet's calls: at the start, when they are poked
// (their record has changed, or a peer has news), and when their session at the disk has changed.
type Loop struct {
	ctx   context.Context
	clock clock.WithTicker
	log   logr.Logger
	queue workqueue.TypedRateLimitingInterface[string]
	work  sync.WaitGroup
}

// NewLoop makes a loop whose work ends with ctx.
func NewLoop(ctx context.Context, c clock.WithTicker, log logr.Logger) *Loop {
	limits := workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetry, maxRetry)
	return &Loop{
		ctx: ctx, clock: c, log: log,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limits, workqueue.TypedRateLimitingQueueConfig[string]{Clock: c}),
	}
}

// Poke has a volume tended after a delay.
func (l *Loop) Poke(volume string, delay time.Duration) { l.queue.AddAfter(volume, delay) }

// Background runs work beside the loop.
func (l *Loop) Background(work func(ctx context.Context)) { l.work.Go(func() { work(l.ctx) }) }

// Run tends the volumes of o until the loop's context ends.
func (l *Loop) Run(o *Owner) error {
	ids, err := o.c.World.Volumes()
	if err != nil {
		return err
	}
	for _, id := range ids { // nothing of an earlier boot, or agent, is continued
		l.Poke(id, 0)
	}
	for range tenders {
		l.work.Go(func() {
			for l.tend(o) {
			}
		})
	}
	l.every(o.Watch, "looking at the volumes in use failed")
	l.every(o.Vouch, "the guard of this node does not have the agent's word, so no volume with epochs can be used here")
	<-l.ctx.Done()
	l.queue.ShutDown()
	o.end()
	l.work.Wait()
	return nil
}

// tend tends the next volume; false if the loop has ended.
func (l *Loop) tend(o *Owner) bool {
	id, end := l.queue.Get()
	if end {
		return false
	}
	defer l.queue.Done(id)
	again, err := o.Tend(l.ctx, id)
	switch {
	case l.ctx.Err() != nil:
	case err != nil:
		l.log.Info("tending a volume failed, trying again", "volume", id, "reason", err.Error())
		l.queue.AddRateLimited(id)
	default:
		l.queue.Forget(id)
		if again > 0 {
			l.queue.AddAfter(id, again)
		}
	}
	return true
}

// every calls f at each beat, and says what is wrong when that changes.
func (l *Loop) every(f func(context.Context) error, wrong string) {
	l.work.Go(func() {
		ticker := l.clock.NewTicker(beat)
		defer ticker.Stop()
		last := ""
		for {
			said := ""
			if err := f(l.ctx); err != nil && l.ctx.Err() == nil {
				if said = err.Error(); said != last {
					l.log.Error(err, wrong)
				}
			}
			last = said
			select {
			case <-l.ctx.Done():
				return
			case <-ticker.C():
			}
		}
	})
}
