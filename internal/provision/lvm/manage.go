package lvm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/run"
)

var _ provision.Manager = (*Provisioner)(nil)

// manager makes volume groups and thin pools, and lets them grow.
type manager struct{ *waker }

// Ensure implements provision.Manager.
func (p *Provisioner) Ensure(ctx context.Context, w provision.PoolWish) (provision.Outcome, error) {
	if err := w.Check(); err != nil {
		return provision.Outcome{}, err
	}
	if w.Pool.Type != provision.LVM && w.Pool.Type != provision.LVMThin {
		return provision.Outcome{}, fmt.Errorf("%w: LVM has no pools of type %s", provision.ErrUnsupported, w.Pool.Type)
	}
	if err := p.engine.LoadOnce(ctx); err != nil {
		return provision.Outcome{}, err
	}
	if s := p.manager.intend(w); s.Command == nil {
		return s.Outcome, nil
	}
	name, _ := group.Split(w.Pool)
	unlock, err := p.engine.UnitLocks.Lock(ctx, name)
	if err != nil {
		return provision.Outcome{}, err
	}
	return run.Do(ctx, &p.engine.Tasks, func(ctx context.Context) (provision.Outcome, error) {
		defer unlock()
		return p.manager.ensureLocked(ctx, name, w)
	})
}

// intend decides from the cache.
func (p *manager) intend(w provision.PoolWish) (s group.Intent) {
	name, thin := group.Split(w.Pool)
	p.engine.With(name, func(g *group.Facts) {
		wish := group.Wish{PoolWish: w, Group: g, Now: time.Now()}
		if thin == "" {
			s = wish.PlanGroup()
		} else {
			s = wish.PlanPool()
		}
	})
	return s
}

// ensureLocked reads the group, decides anew, and takes that step.
func (p *manager) ensureLocked(ctx context.Context, name string, w provision.PoolWish) (none provision.Outcome, _ error) {
	if err := p.reread(ctx, name); err != nil {
		return none, err
	}
	s := p.intend(w)
	switch {
	case s.Command == nil:
		return s.Outcome, nil
	case len(s.Disks) == 0:
		return s.Outcome, p.take(ctx, name, s, nil)
	case p.config.Disks == nil:
		return none, fmt.Errorf("%w: no disks are lent to make volume group %s of", provision.ErrUnsupported, name)
	}
	var taken []string
	refused, err := p.config.Disks.Lend(ctx, s.Disks, func(nodes []string) (err error) {
		taken, err = p.takeDisks(ctx, name, w, nodes)
		return err
	})
	why := errors.Join(append(refused, err)...)
	switch {
	case len(taken) == 0 && err != nil:
		return none, err
	case len(taken) == 0:
		return group.Stands(provision.DisksRefused, "no disk was taken for volume group %s: %v", name, why).Outcome, nil
	}
	s.Message += " of " + strings.Join(taken, ", ")
	if why != nil {
		s.Message += fmt.Sprintf("; others were not taken: %v", why)
	}
	return s.Outcome, nil
}

// takeDisks takes lent disks, all in one step. If LVM refuses, it takes one after the other, so
// that a disk with another block size holds up no other.
func (p *manager) takeDisks(ctx context.Context, name string, w provision.PoolWish, nodes []string) (taken []string, err error) {
	err = p.take(ctx, name, p.intend(w), nodes)
	if err == nil {
		return nodes, nil
	}
	if len(nodes) == 1 {
		return nil, err
	}
	var failures []error
	for _, node := range nodes {
		s := p.intend(w)
		if s.Command == nil {
			return taken, err // the group as it is now is not to be changed
		}
		if err := p.take(ctx, name, s, []string{node}); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", node, err))
			continue
		}
		taken = append(taken, node)
	}
	return taken, errors.Join(failures...)
}

// reread asks LVM for a group. It fails for a group that is not known if LVM does not answer for
// some other group, since the report is incomplete then.
func (p *manager) reread(ctx context.Context, name string) error {
	if p.state.has(name) {
		p.refresh(ctx, name)
		return context.Cause(ctx)
	}
	if err := p.refreshAll(ctx); err != nil {
		return err
	}
	if silent := p.engine.Silent(); len(silent) > 0 {
		return fmt.Errorf("%w: LVM does not answer for volume group %s, and so no other is made", provision.ErrUnavailable, silent[0])
	}
	return nil
}

// take takes a step and reads the group again, also if the step failed.
func (p *manager) take(ctx context.Context, name string, s group.Intent, nodes []string) error {
	var lacking error
	if s.Target != "" {
		lacking = p.provide(s.Target)
	}
	ended := p.engine.Begin(name, name)
	_, err := p.change(s.Command(p.tool, nodes))
	ended()
	err = explained(err, lacking)
	p.refresh(ctx, name)
	if err != nil {
		p.resume(name)
	}
	p.engine.Changed.Set()
	if err != nil {
		return fmt.Errorf("changing volume group %s: %w", name, err)
	}
	return nil
}
