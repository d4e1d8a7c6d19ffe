package lvm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/run"
)

// reader asks LVM and the kernel, and caches their answers.
type reader struct {
	config Config
	engine *engine.Engine[*group.Facts]
	state  state
	tool   group.Tool
	guard  guard
	// readings are the physical volumes whose sequence number is being read.
	readings checks
	// behind counts the queries that could not be ended.
	behind atomic.Int64
	// nudge makes all chores look for work.
	nudge func()
	// seen is called once, when LVM first answered for all groups.
	seen      func(ctx context.Context)
	firstLook sync.Once
}

// refreshAll reads all groups with one process. If LVM does not answer, some group may block it.
// refreshAll then lists the groups by name and asks for each on its own, so that the others stay
// known. While LVM does not answer for a group only the others are read.
func (p *reader) refreshAll(ctx context.Context) error {
	if names, all := p.state.answering(); !all {
		p.refreshEach(ctx, names)
		return context.Cause(ctx)
	}
	asked := p.engine.Asked()
	a, err := p.query(ctx)
	if err == nil {
		a.All, a.Asked = true, asked
		p.apply(a)
		p.firstLook.Do(func() { p.seen(context.WithoutCancel(ctx)) })
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	p.state.staleAll()
	names, nameErr := p.queryNames(ctx)
	if nameErr != nil && p.state.silenceAll(err) {
		return context.Cause(ctx)
	}
	if nameErr != nil {
		return provision.Unavailable(errors.Join(err, nameErr))
	}
	for _, name := range names {
		if !p.state.has(name) {
			p.state.silence(name, err)
		}
	}
	p.refreshEach(ctx, names)
	return context.Cause(ctx)
}

// refreshEach reads each of the named groups, at the same time.
func (p *reader) refreshEach(ctx context.Context, names []string) {
	var readers sync.WaitGroup
	for _, name := range names {
		readers.Go(func() { p.refresh(ctx, name) })
	}
	readers.Wait()
}

// refresh reads one group. It puts the result into the state: the group as it is, that LVM does
// not answer for it, or that it is gone.
func (p *reader) refresh(ctx context.Context, name string) {
	asked := p.engine.Asked()
	a, err := p.query(ctx, name)
	if err == nil && p.state.is(name, a) {
		a.Asked = asked
		p.apply(a)
		return
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.state.silence(name, err)
	}
	if _, answered := errors.AsType[*run.ExitError](err); answered || err == nil {
		// The group may be gone, have another name or share it. Only a report of all can tell.
		asked := p.engine.Asked()
		if a, err := p.query(ctx); err == nil {
			a.All, a.Asked = true, asked
			p.apply(a)
		}
	}
}

// apply takes in an answer, and makes the chores look for work in it.
func (p *reader) apply(a group.Answer) {
	p.state.apply(a, time.Now())
	p.nudge()
}

// query asks LVM for a report of the named groups, or of all.
func (p *reader) query(ctx context.Context, groups ...string) (group.Answer, error) {
	before := p.mapped()
	out, err := p.askGuarded(ctx, p.tool.ReportCommand(groups...))
	if err != nil {
		return group.Answer{}, err
	}
	read, err := group.Parse(out)
	if err != nil {
		return group.Answer{}, err
	}
	strange, err := p.strange()
	if err != nil {
		return group.Answer{}, err
	}
	a := group.Sift(read, strange)
	after := p.mapped()
	for _, g := range a.Groups {
		for name, pool := range g.Pools {
			pool.Kernel = kernelStatus(p.config.Devices, g.Name, name)
			pool.Suspended = before.suspends(g.Name, name) && after.suspends(g.Name, name)
		}
	}
	return a, nil
}

// queryNames asks for the names of the groups alone, which LVM can tell without
// waiting for the lock of any.
func (p *reader) queryNames(ctx context.Context) ([]string, error) {
	out, err := p.askGuarded(ctx, p.tool.NamesCommand())
	if err != nil {
		return nil, err
	}
	return group.ParseNames(out)
}
