package lvm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

var _ provision.Manager = (*Provisioner)(nil)

// step is how a wish stands, and what is to be done about it.
type step struct {
	// Outcome is what is told when the step is taken, or when there is none.
	provision.Outcome
	// target of the device mapper that it needs, if not every kernel has that loaded.
	target string
	// disks that are taken for it.
	disks []string
	// command takes the step, with the nodes of the disks; nil if nothing is to be done.
	command func(c Config, nodes []string) run.Command
}

func stands(r provision.Reason, format string, args ...any) step {
	return step{Outcome: provision.Outcome{Reason: r, Message: fmt.Sprintf(format, args...)}}
}

// Ensure implements provision.Manager.
func (p *Provisioner) Ensure(ctx context.Context, w provision.PoolWish) (provision.Outcome, error) {
	if err := w.Check(); err != nil {
		return provision.Outcome{}, err
	}
	if w.Pool.Type != provision.LVM && w.Pool.Type != provision.LVMThin {
		return provision.Outcome{}, fmt.Errorf("%w: LVM has no pools of type %s", provision.ErrUnsupported, w.Pool.Type)
	}
	if err := p.load(ctx); err != nil {
		return provision.Outcome{}, err
	}
	if s := p.intend(w); s.command == nil {
		return s.Outcome, nil
	}
	name, _ := split(w.Pool)
	unlock, err := p.groups.Lock(ctx, name)
	if err != nil {
		return provision.Outcome{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Outcome, error) {
		defer unlock()
		return p.ensureLocked(ctx, name, w)
	})
}

// intend decides from what is known.
func (p *Provisioner) intend(w provision.PoolWish) (s step) {
	name, thin := split(w.Pool)
	p.state.with(name, func(g *group) {
		if thin == "" {
			s = g.planGroup(w, p.config.Now())
		} else {
			s = g.planPool(w, p.config.Now())
		}
	})
	return s
}

// ensureLocked takes a step that is decided upon anew from a fresh report.
func (p *Provisioner) ensureLocked(ctx context.Context, name string, w provision.PoolWish) (none provision.Outcome, _ error) {
	if err := p.reread(ctx, name); err != nil {
		return none, err
	}
	s := p.intend(w)
	switch {
	case s.command == nil:
		return s.Outcome, nil
	case len(s.disks) == 0:
		return s.Outcome, p.take(ctx, name, s, nil)
	case p.config.Disks == nil:
		return none, fmt.Errorf("%w: nobody lends disks to make volume group %s of", provision.ErrUnsupported, name)
	}
	var taken []string
	refused, err := p.config.Disks.Lend(ctx, s.disks, func(nodes []string) (err error) {
		taken, err = p.takeDisks(ctx, name, w, nodes)
		return err
	})
	why := errors.Join(append(refused, err)...)
	switch {
	case len(taken) == 0 && err != nil:
		return none, err
	case len(taken) == 0:
		return stands(provision.DisksRefused, "no disk was taken for volume group %s: %v", name, why).Outcome, nil
	}
	s.Message += " of " + strings.Join(taken, ", ")
	if why != nil {
		s.Message += fmt.Sprintf("; others were not taken: %v", why)
	}
	return s.Outcome, nil
}

// takeDisks takes disks that are lent, all in one step. Should LVM refuse, one after the
// other: a disk with blocks of another size holds up no other.
func (p *Provisioner) takeDisks(ctx context.Context, name string, w provision.PoolWish, nodes []string) (taken []string, err error) {
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
		if s.command == nil {
			return taken, err // what is left of the group is not to be changed
		}
		if err := p.take(ctx, name, s, []string{node}); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", node, err))
			continue
		}
		taken = append(taken, node)
	}
	return taken, errors.Join(failures...)
}

// reread asks LVM for a group. One that is not known must not be in the part of LVM that
// does not answer.
func (p *Provisioner) reread(ctx context.Context, name string) error {
	if p.state.has(name) {
		p.refresh(ctx, name)
		return context.Cause(ctx)
	}
	if err := p.refreshAll(ctx); err != nil {
		return err
	}
	if silent := p.state.silentNames(); len(silent) > 0 {
		return fmt.Errorf("%w: LVM does not answer for volume group %s, and so no other is made", provision.ErrUnavailable, silent[0])
	}
	return nil
}

// take takes a step and learns what came of it, also when it failed.
func (p *Provisioner) take(ctx context.Context, name string, s step, nodes []string) error {
	var lacking error
	if s.target != "" {
		lacking = p.provide(s.target)
	}
	p.begin(name)
	_, err := p.change(s.command(p.config, nodes))
	p.end(name)
	err = explained(err, lacking)
	p.refresh(ctx, name)
	if err != nil {
		p.resume(name)
	}
	p.signal()
	if err != nil {
		return fmt.Errorf("changing volume group %s: %w", name, err)
	}
	return nil
}
