package lvm

import (
	"context"
	"errors"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// load reads all groups if that was never done.
func (p *Provisioner) load(ctx context.Context) error {
	p.state.mu.Lock()
	loaded := p.state.loaded
	p.state.mu.Unlock()
	if loaded {
		return nil
	}
	return p.refreshDue(ctx)
}

// refreshDue reads what is stale. Callers at the same time share one reading.
func (p *Provisioner) refreshDue(ctx context.Context) error {
	unlock, err := p.reports.Lock(ctx, "")
	if err != nil {
		return err
	}
	defer unlock()
	names, all := p.state.due()
	if all {
		return p.refreshAll(ctx)
	}
	p.refreshEach(ctx, names)
	return context.Cause(ctx)
}

// refreshAll reads all groups with one process. If LVM does not answer, some group
// may block it: the groups are found by name and each is asked on its own, so that
// the others stay known. While a group is silent only the others are read.
func (p *Provisioner) refreshAll(ctx context.Context) error {
	if names, all := p.state.answering(); !all {
		p.refreshEach(ctx, names)
		return context.Cause(ctx)
	}
	asked := p.state.ask()
	a, err := p.query(ctx)
	if err == nil {
		a.all, a.asked = true, asked
		p.apply(a)
		p.firstLook.Do(func() {
			p.activateAll(context.WithoutCancel(ctx))
			p.mend(context.WithoutCancel(ctx))
		})
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
	p.state.mu.Lock()
	p.state.loaded = true
	p.state.mu.Unlock()
	return context.Cause(ctx)
}

// refreshEach reads each of the named groups, at the same time.
func (p *Provisioner) refreshEach(ctx context.Context, names []string) {
	var readers sync.WaitGroup
	for _, name := range names {
		readers.Go(func() { p.refresh(ctx, name) })
	}
	readers.Wait()
}

// refresh reads one group. Whatever comes of it is in the state: the group as it
// is, that LVM does not answer for it, or that it is gone.
func (p *Provisioner) refresh(ctx context.Context, name string) {
	asked := p.state.ask()
	a, err := p.query(ctx, name)
	if err == nil && p.state.is(name, a) {
		a.asked = asked
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
		asked := p.state.ask()
		if a, err := p.query(ctx); err == nil {
			a.all, a.asked = true, asked
			p.apply(a)
		}
	}
}

// apply takes an answer in, and has what it shows to be wiped wiped.
func (p *Provisioner) apply(a answer) {
	p.state.apply(a, p.config.Now())
	p.nudge()
}

// query asks LVM for a report of the named groups, or of all.
func (p *Provisioner) query(ctx context.Context, groups ...string) (answer, error) {
	before := p.mapped()
	out, err := p.askGuarded(ctx, p.config.reportCommand(groups...))
	if err != nil {
		return answer{}, err
	}
	read, err := parse(out)
	if err != nil {
		return answer{}, err
	}
	strange, err := p.strange()
	if err != nil {
		return answer{}, err
	}
	a := sift(read, strange)
	after := p.mapped()
	for _, g := range a.groups {
		for name, pool := range g.pools {
			pool.kernel = p.kernelStatus(g.name, name)
			pool.suspended = before.suspends(g.name, name) && after.suspends(g.name, name)
		}
	}
	return a, nil
}

// queryNames asks for the names of the groups alone, which LVM can tell without
// waiting for the lock of any.
func (p *Provisioner) queryNames(ctx context.Context) ([]string, error) {
	out, err := p.askGuarded(ctx, p.config.namesCommand())
	if err != nil {
		return nil, err
	}
	return parseNames(out)
}
