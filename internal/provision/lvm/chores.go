package lvm

import (
	"context"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/signal"
)

// chores are long tasks in the background, for which no caller waits. Each group runs one at a
// time, which leaves the disks to the pods.
type chores struct {
	kicked signal.Signal
	busy   checks
	// list returns the tries of the chores of a group that can go on, by id.
	list func(*group.Facts) map[string]*group.Tries
	do   func(ctx context.Context, group, id string) error
}

func newChores(list func(*group.Facts) map[string]*group.Tries, do func(ctx context.Context, group, id string) error) *chores {
	return &chores{kicked: signal.New(), list: list, do: do}
}

// kick makes attend look for chores.
func (c *chores) kick() {
	c.kicked.Set()
}

// attend does chores until ctx ends.
func (c *chores) attend(ctx context.Context, p *reader) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		due, wait := c.due(p.engine, time.Now(), refreshInterval)
		for name, id := range due {
			c.busy.begin(name)
			p.engine.Tasks.Go(func() { c.try(ctx, p, name, id) })
		}
		retry.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-c.kicked:
		case <-retry.C:
		}
	}
}

// try does a chore, or notes why it could not be done.
func (c *chores) try(ctx context.Context, p *reader, name, id string) {
	err := c.do(ctx, name, id)
	if err != nil && ctx.Err() == nil {
		p.engine.With(name, func(g *group.Facts) {
			if g == nil {
				return
			}
			if t := c.list(g)[id]; t != nil {
				t.Again(err, time.Now(), wipeRetry, refreshInterval)
			}
		})
		p.engine.Changed.Set()
	}
	c.busy.end(name)
	p.nudge()
}

// due returns the chore that has been due for longest, for each group that answers, can be
// changed and runs no chore. wait is how long it takes until the next chore is due, longest at
// most.
func (c *chores) due(e *engine.Engine[*group.Facts], now time.Time, longest time.Duration) (due map[string]string, wait time.Duration) {
	e.Lock()
	defer e.Unlock()
	due, wait = map[string]string{}, longest
	for name, g := range e.Units() {
		if !g.Changeable() || g.Silent != nil || c.busy.has(name) {
			continue
		}
		list := c.list(g)
		for _, id := range slices.Sorted(maps.Keys(list)) {
			switch left := list[id].Due.Sub(now); {
			case left > 0:
				wait = min(wait, left)
			case due[name] == "" || list[id].Due.Before(list[due[name]].Due):
				due[name] = id
			}
		}
	}
	return due, wait
}
