package lvm

import (
	"context"
	"maps"
	"slices"
	"time"
)

// chores are what takes long and nobody waits for: one at a time in each group, which
// leaves the disks to those who use them.
type chores struct {
	kicked chan struct{}
	busy   checks
	// list returns the tries of those of a group that can be gone on with.
	list func(*group) map[string]*tries
	do   func(ctx context.Context, group, id string) error
}

func newChores(list func(*group) map[string]*tries, do func(ctx context.Context, group, id string) error) *chores {
	return &chores{kicked: make(chan struct{}, 1), list: list, do: do}
}

// kick has the chores looked for.
func (c *chores) kick() {
	select {
	case c.kicked <- struct{}{}:
	default:
	}
}

// nudge has all that is to be done behind the callers' backs looked for.
func (p *Provisioner) nudge() {
	p.copies.kick()
	p.wipes.kick()
}

// attend does chores until ctx ends.
func (p *Provisioner) attend(ctx context.Context, c *chores) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		due, wait := p.state.chores(c, p.config.Now(), p.config.RefreshInterval)
		for name, id := range due {
			c.busy.begin(name)
			p.tasks.Go(func() { p.try(ctx, c, name, id) })
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
func (p *Provisioner) try(ctx context.Context, c *chores, name, id string) {
	err := c.do(ctx, name, id)
	if err != nil && ctx.Err() == nil {
		p.state.with(name, func(g *group) {
			if g == nil {
				return
			}
			if t := c.list(g)[id]; t != nil {
				t.again(err, p.config.Now(), p.config.WipeRetry, p.config.RefreshInterval)
			}
		})
		p.signal()
	}
	c.busy.end(name)
	p.nudge()
}

// chores returns by its group the chore that has been due for longest, for each of the
// groups that can be changed and is not busy with one, and how long it is until the next
// is due.
func (s *state) chores(c *chores, now time.Time, longest time.Duration) (due map[string]string, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, wait = map[string]string{}, longest
	for name, g := range s.groups {
		if !g.changeable() || g.silent != nil || c.busy.has(name) {
			continue
		}
		list := c.list(g)
		for _, id := range slices.Sorted(maps.Keys(list)) {
			switch left := list[id].due.Sub(now); {
			case left > 0:
				wait = min(wait, left)
			case due[name] == "" || list[id].due.Before(list[due[name]].due):
				due[name] = id
			}
		}
	}
	return due, wait
}

// tries are those that failed in a row: why the last one did, and when the next is due.
type tries struct {
	failed error
	count  int
	due    time.Time
}

// again notes that a try failed.
func (t *tries) again(err error, now time.Time, first, longest time.Duration) {
	t.failed, t.due = err, now.Add(min(first<<min(t.count, 20), longest))
	t.count++
}
