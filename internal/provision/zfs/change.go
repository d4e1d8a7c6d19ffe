package zfs

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/zfs/zpool"
)

// backend is a Provisioner as the engine sees it.
type backend struct{ *Provisioner }

// Discover asks the kernel, without a process, which zpools there are. It also checks whether the
// programs of ZFS go with the kernel's module.
func (b backend) Discover(ctx context.Context) error {
	pools, err := b.config.Devices.Pools()
	if err != nil {
		return fmt.Errorf("%w: listing zpools: %w", provision.ErrUnavailable, err)
	}
	if b.state.notice(pools) {
		b.engine.Changed.Set()
	}
	b.checkTools(ctx)
	return nil
}

// Loaded has all zpools tidied: a crash may have left something.
func (b backend) Loaded(ctx context.Context) { b.tidyEach(ctx) }

func (b backend) Refresh(ctx context.Context, name string) { b.refresh(ctx, name) }

// LookAgain sweeps up first: leftovers may be in the way.
func (b backend) LookAgain(ctx context.Context, name string) (swept bool) {
	swept = b.sweep(ctx, name)
	if unlock, err := b.engine.UnitLocks.Lock(ctx, name); err == nil {
		b.refresh(ctx, name)
		unlock()
	}
	return swept
}

// Fit returns why the programs of ZFS must not be used on a zpool; nil if they may.
func (b backend) Fit(z *zpool.Facts, _ string, _ []engine.Step[*zpool.Facts]) error {
	if z != nil && z.Unfit != "" {
		return fmt.Errorf("%w: %s", provision.ErrUnavailable, z.Unfit)
	}
	return nil
}

// Ended has a zpool tidied if a change has left something over in it.
func (b backend) Ended(ctx context.Context, name string) { b.tidySoon(ctx, name) }

func (r *reader) planner() zpool.Planner {
	return zpool.Planner{Tool: r.tool, Now: r.config.Now()}
}

// changer carries out the steps of plans.
type changer struct{ *reader }

// planning plans a change with a planner.
type planning func(p zpool.Planner, z *zpool.Facts) ([]zpool.Step, error)

// planned returns the plan of a change whose steps are commands of ZFS.
func (c *changer) planned(name string, plan planning) func(*zpool.Facts, bool) ([]engine.Step[*zpool.Facts], error) {
	return c.plannedWith(name, func() {}, plan)
}

// plannedWith is planned, and calls making before a step that makes a volume.
func (c *changer) plannedWith(name string, making func(), plan planning) func(*zpool.Facts, bool) ([]engine.Step[*zpool.Facts], error) {
	return func(z *zpool.Facts, _ bool) (all []engine.Step[*zpool.Facts], err error) {
		steps, err := plan(c.planner(), z)
		for _, s := range steps {
			if s.Subject != nil && z.Silent != nil { // asking for the subject might leave a process behind
				return nil, fmt.Errorf("%w: ZFS does not answer for zpool %s: %w", provision.ErrUnavailable, name, z.Silent)
			}
			do := func(ctx context.Context) (func(*zpool.Facts), error) {
				if s.Makes {
					making()
				}
				return c.take(ctx, name, s)
			}
			all = append(all, engine.Step[*zpool.Facts]{Name: s.Name(), Takes: s.Takes, Pool: s.Parent, Do: do})
		}
		return all, err
	}
}

// take runs the command of a step.
func (c *changer) take(ctx context.Context, name string, s zpool.Step) (learn func(*zpool.Facts), err error) {
	if err := c.run(ctx, name, s); err != nil {
		return nil, err
	}
	return func(z *zpool.Facts) {
		if z.Read.IsZero() {
			return // it went and came back meanwhile
		}
		s.Learn(z)
		if s.Forgets != "" {
			c.config.Devices.Forget(s.Forgets)
		}
	}, nil
}

// safe returns nil if the command of a step meets the dataset that it was planned for, and no pod
// uses that.
func (c *changer) safe(ctx context.Context, name string, s zpool.Step) error {
	if s.Subject != nil {
		report, err := c.askAbout(ctx, name, s.Subject)
		if err == nil {
			err = s.Subject.Check(report)
		}
		if err != nil {
			return err
		}
	}
	if s.Unused != nil && c.uses(*s.Unused) {
		return s.Unused.Refusal
	}
	return nil
}

// askAbout asks ZFS what bears the name of a subject. It does not ask a zpool that went or was
// suspended since the step was planned. If ZFS does not answer, the zpool counts as silent, and is
// not read again until that process ends.
func (c *changer) askAbout(ctx context.Context, name string, s *zpool.Subject) ([]byte, error) {
	err := fmt.Errorf("%w: zpool %s", provision.ErrPoolMissing, name)
	note := func(f func(z *zpool.Facts)) {
		c.engine.With(name, func(z *zpool.Facts) {
			if z != nil {
				f(z)
			}
		})
	}
	note(func(z *zpool.Facts) { err = z.Answers(c.config.Now()) })
	if err != nil {
		return nil, err
	}
	report, err := engine.Ask(ctx, c.config.Runner, c.tool.SubjectCommand(s), queryTimeout, func() (ended func()) {
		note(func(z *zpool.Facts) { z.Asking, z.Silent = true, engine.ErrNoAnswer })
		return func() { note(func(z *zpool.Facts) { z.Asking = false }) }
	})
	if err != nil {
		return nil, fmt.Errorf("%w: asking ZFS what it is about to change: %w", provision.ErrUnavailable, err)
	}
	return report, nil
}

// uses says whether the kernel shows a use of a volume.
func (c *changer) uses(u zpool.Use) bool {
	if u.Mounted {
		return c.config.Devices.Mounted(u.Dataset)
	}
	return c.config.Devices.Claimed(u.Dataset)
}

// runs bounds how often a command is tried that fails while udev looks at its zvol. udev looks at
// a zvol when it is made, and when it is renamed.
const runs = 3

func (c *changer) run(ctx context.Context, name string, s zpool.Step) (err error) {
	for range runs {
		if err := c.safe(ctx, name, s); err != nil {
			return err
		}
		if _, err = c.config.Runner.Change(s.Command); err == nil {
			return nil
		}
		if s.Settles == "" {
			break
		}
		c.config.Devices.Settle(ctx, s.Settles)
	}
	return fmt.Errorf("changing zpool %s: %w", name, err)
}
