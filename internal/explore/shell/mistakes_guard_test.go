package shell

import (
	"context"
	"time"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
)

func guards(f func(c *keep.Config)) seam[keep.Config] {
	return func(_ *process, c keep.Config) keep.Config {
		f(&c)
		return c
	}
}

var mistakesOfGuards = []mistake{
	{class: nilOnError, name: "renewal-error", seen: 22, thought: "the next renewal is due soon", guard: guards(func(c *keep.Config) { c.Lease = confident{c.Lease} })},
	{class: answeredEarly, name: "stopped-later", seen: 560, thought: "the writers are told to stop, and they will", guard: func(p *process, c keep.Config) keep.Config {
		c.Writers = ordering{c.Writers, p}
		return c
	}},
	{class: noFsync, name: "state-not-kept", thought: "the guard does not die", guard: guards(func(c *keep.Config) { c.Store = volatile{c.Store} })},
	{class: outOfOrder, name: "watchdog-fed-for-long", seen: 49, thought: "the guard feeds the watchdog in time anyway", guard: guards(func(c *keep.Config) { c.Watchdog = overfed{c.Watchdog} })},
}

type confident struct{ keep.Lease }

func (x confident) Renew(ctx context.Context, says func([]string) (guard.Renewal, error)) error {
	_ = x.Lease.Renew(ctx, says)
	return nil
}

type ordering struct {
	keep.Writers
	p *process
}

func (x ordering) Stop(h guard.Holding) error {
	go func() {
		if waits(x.p.ctx, 15*time.Second) == nil {
			_ = x.Writers.Stop(h)
		}
	}()
	return nil
}

type volatile struct{ keep.Store }

func (volatile) Save(keep.State) error { return nil }

type overfed struct{ keep.Watchdog }

func (x overfed) Feed(within time.Duration) error { return x.Watchdog.Feed(10 * within) }
func (overfed) Shorten(time.Duration) error       { return nil }
