package zfs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

var _ provision.Manager = (*Provisioner)(nil)

// Ensure implements provision.Manager.
func (p *Provisioner) Ensure(ctx context.Context, w provision.PoolWish) (none provision.Outcome, _ error) {
	if err := w.Check(); err != nil {
		return none, err
	}
	if w.Pool.Type != provision.ZFS {
		return none, fmt.Errorf("%w: ZFS has no pools of type %s", provision.ErrUnsupported, w.Pool.Type)
	}
	if err := p.load(ctx); err != nil {
		return none, err
	}
	name := strings.TrimPrefix(w.Pool.Name, provision.ZFSPrefix)
	if v := p.judge(name, w, p.config.RefreshInterval); v.act == rest {
		return v.Outcome, nil
	}
	unlock, err := p.zpools.Lock(ctx, name)
	if err != nil {
		return none, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Outcome, error) {
		defer unlock()
		return p.ensureLocked(ctx, name, w)
	})
}

// justNow is the age of findings that were made under the zpool's lock, however long ago.
const justNow = time.Duration(math.MaxInt64)

// judge decides from what is known, if it is no older.
func (p *Provisioner) judge(name string, w provision.PoolWish, maxAge time.Duration) (v verdict) {
	f := facts{finding: p.findings.get(name), now: p.config.Now(), maxAge: maxAge}
	p.state.with(name, func(z *zpool) {
		f.zpool = z
		v = f.judge(w, name)
	})
	if f.zpool != nil {
		p.findings.see(name)
	}
	return v
}

// ensureLocked takes a step that is decided upon anew from fresh facts.
func (p *Provisioner) ensureLocked(ctx context.Context, name string, w provision.PoolWish) (none provision.Outcome, _ error) {
	if v, err := p.unable(ctx, name, w); err != nil || v.Reason != "" {
		return v, err
	}
	p.findings.forget(name)
	if err := p.reread(ctx, name); err != nil {
		return none, err
	}
	v := p.judge(name, w, justNow)
	var err error
	switch v.act {
	case askMark:
		err = p.readMark(ctx, name)
	case look:
		err = p.search(ctx, name, w.Search)
	}
	if err != nil {
		return none, err
	}
	switch v = p.judge(name, w, justNow); v.act {
	case rest:
		return v.Outcome, nil
	case bring:
		return v.Outcome, p.change(ctx, name, p.config.importCommand(v.id, p.aliases(w.Search)))
	case takeDisk:
		return p.takeDisks(ctx, name, w, v.Outcome)
	}
	return none, fmt.Errorf("%w: zpool %s changed meanwhile", provision.ErrUnavailable, name)
}

// unable says why zpools cannot be made or imported on this machine; the outcome has no
// reason if they can.
func (p *Provisioner) unable(ctx context.Context, name string, w provision.PoolWish) (none provision.Outcome, err error) {
	module, why := p.config.Devices.Module(), ""
	if module == "" {
		why = "the kernel has no ZFS loaded (modprobe zfs)"
	} else if why, err = p.misfits(ctx, module); err != nil {
		return none, err
	}
	switch {
	case why == "":
		return none, nil
	case len(w.Disks)+len(w.Search) == 0:
		return stands(provision.PoolAwaitsDisks, "there is no zpool %s: %s", name, why).Outcome, nil
	}
	return stands(provision.PoolTroubled, "zpool %s is not changed: %s", name, why).Outcome, nil
}

// misfits says why the programs of ZFS do not go with the kernel's module. On a machine
// without zpools nobody asked them yet.
func (p *Provisioner) misfits(ctx context.Context, module string) (string, error) {
	p.state.mu.Lock()
	tools := p.state.tools
	p.state.mu.Unlock()
	if tools.module == module {
		return tools.problem, nil
	}
	out, err := p.ask(ctx, p.config.command("version"), func() {})
	if err != nil {
		return "", fmt.Errorf("asking the programs of ZFS for their version: %w", err)
	}
	return misfit(string(out), module), nil
}

// reread asks the kernel which zpools there are, and ZFS for one of them, for who holds
// its lock.
func (p *Provisioner) reread(ctx context.Context, name string) error {
	pools, err := p.config.Devices.Pools()
	if err != nil {
		return fmt.Errorf("%w: listing zpools: %w", provision.ErrUnavailable, err)
	}
	if p.state.notice(pools) {
		p.signal()
	}
	p.refresh(ctx, name)
	return context.Cause(ctx)
}

// change runs a command and learns what came of it, also when it failed.
func (p *Provisioner) change(ctx context.Context, name string, c run.Command) error {
	p.state.with(name, func(z *zpool) { z.begin(name, p.config.Now(), nil) })
	_, failure := p.config.Runner.Change(c)
	p.state.with(name, func(z *zpool) { z.end(name) })
	err := p.reread(ctx, name)
	p.signal()
	if failure != nil {
		return fmt.Errorf("changing zpool %s: %w", name, failure)
	}
	return err
}

// takeDisks takes one vdev after the other, so that one which ZFS does not take holds up
// no other.
func (p *Provisioner) takeDisks(ctx context.Context, name string, w provision.PoolWish, o provision.Outcome) (none provision.Outcome, _ error) {
	if p.config.Disks == nil {
		return none, fmt.Errorf("%w: nobody lends disks to make zpool %s of", provision.ErrUnsupported, name)
	}
	if !p.config.Devices.Udev() {
		return stands(provision.PoolTroubled, "zpool %s is not changed: udev does not run on the node, and zpool waits for it when it labels disks", name).Outcome, nil
	}
	var taken []string
	var refusals, failures []error
	for disks := range slices.Chunk(w.Disks, w.Zpool.Width) {
		if p.judge(name, w, justNow).act != takeDisk {
			break // what is left of the zpool is not to be changed
		}
		nodes, refused, err := p.takeVdev(ctx, name, w.Zpool, disks)
		taken, refusals = append(taken, nodes...), append(refusals, refused...)
		if err != nil {
			failures = append(failures, err)
		}
	}
	why := errors.Join(append(refusals, failures...)...)
	switch {
	case len(taken) == 0 && failures != nil:
		return none, why
	case len(taken) == 0:
		return stands(provision.DisksRefused, "no disk was taken for zpool %s: %v", name, why).Outcome, nil
	}
	o.Message += " of " + strings.Join(taken, ", ")
	if why != nil {
		o.Message += fmt.Sprintf("; others were not taken: %v", why)
	}
	return o, nil
}

// takeVdev makes a zpool of a vdev, or adds it, if all of its disks are lent.
func (p *Provisioner) takeVdev(ctx context.Context, name string, z provision.Zpool, disks []string) (taken []string, refused []error, err error) {
	refused, err = p.config.Disks.Lend(ctx, disks, func(nodes []string) error {
		if len(nodes) < len(disks) {
			return nil
		}
		names := p.aliases(nodes)
		there := false
		p.state.with(name, func(z *zpool) { there = z != nil })
		command := p.config.makeZpoolCommand(name, z, names)
		if there {
			command = p.config.growZpoolCommand(name, z, names)
		}
		if err := p.change(ctx, name, command); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
		}
		taken = names
		p.findings.edit(name, func(f *finding) { f.mark, f.marked, f.seen = markOf(z), p.config.Now(), true })
		return nil
	})
	return taken, refused, err
}
