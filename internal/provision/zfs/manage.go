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
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run"
)

var _ provision.Manager = (*Provisioner)(nil)

// Ensure implements provision.Manager.
func (p *Provisioner) Ensure(ctx context.Context, w provision.PoolWish) (provision.Outcome, error) {
	return p.manager.ensure(ctx, w)
}

// manager makes zpools, lets them grow and imports them.
type manager struct {
	*reader
	// findings are about zpools that classes ask for.
	findings findings
}

// ensure brings a zpool a step nearer to a wish.
func (m *manager) ensure(ctx context.Context, w provision.PoolWish) (none provision.Outcome, _ error) {
	if err := w.Check(); err != nil {
		return none, err
	}
	if w.Pool.Type != provision.ZFS {
		return none, fmt.Errorf("%w: ZFS has no pools of type %s", provision.ErrUnsupported, w.Pool.Type)
	}
	if err := m.engine.LoadOnce(ctx); err != nil {
		return none, err
	}
	name := strings.TrimPrefix(w.Pool.Name, provision.ZFSPrefix)
	if i := m.judge(name, w, m.config.RefreshInterval); i.Act == zpool.Rest {
		return i.Outcome, nil
	}
	unlock, err := m.engine.UnitLocks.Lock(ctx, name)
	if err != nil {
		return none, err
	}
	return run.Do(ctx, &m.engine.Tasks, func(ctx context.Context) (provision.Outcome, error) {
		defer unlock()
		return m.ensureLocked(ctx, name, w)
	})
}

// justNow is the maximum age of findings that were made under the zpool's lock: they are
// fresh however long ago they were made.
const justNow = time.Duration(math.MaxInt64)

// judge decides from the facts, and from findings that are no older than maxAge.
func (m *manager) judge(name string, w provision.PoolWish, maxAge time.Duration) (i zpool.Intent) {
	f := zpool.Case{Finding: m.findings.get(name), Now: m.config.Now(), MaxAge: maxAge}
	m.engine.With(name, func(z *zpool.Facts) {
		f.Facts = z
		i = f.Judge(w, name)
	})
	if f.Facts != nil {
		m.findings.see(name)
	}
	return i
}

// ensureLocked takes a step. It decides anew which one, from fresh facts.
func (m *manager) ensureLocked(ctx context.Context, name string, w provision.PoolWish) (none provision.Outcome, _ error) {
	if v, err := m.unable(ctx, name, w); err != nil || v.Reason != "" {
		return v, err
	}
	m.findings.forget(name)
	if err := m.reread(ctx, name); err != nil {
		return none, err
	}
	i := m.judge(name, w, justNow)
	var err error
	switch i.Act {
	case zpool.AskMark:
		err = m.readMark(ctx, name)
	case zpool.Look:
		err = m.search(ctx, name, w.Search)
	}
	if err != nil {
		return none, err
	}
	switch i = m.judge(name, w, justNow); i.Act {
	case zpool.Rest:
		return i.Outcome, nil
	case zpool.Bring:
		return i.Outcome, m.change(ctx, name, m.poolTool.ImportCommand(i.ID, m.aliases(w.Search)))
	case zpool.TakeDisk:
		return m.takeDisks(ctx, name, w, i.Outcome)
	}
	return none, fmt.Errorf("%w: zpool %s changed meanwhile", provision.ErrUnavailable, name)
}

// unable says why zpools cannot be made or imported on this machine; the outcome has no
// reason if they can.
func (m *manager) unable(ctx context.Context, name string, w provision.PoolWish) (none provision.Outcome, err error) {
	module, why := m.config.Devices.Module(), ""
	if module == "" {
		why = "the kernel has no ZFS loaded (modprobe zfs)"
	} else if why, err = m.misfits(ctx, module); err != nil {
		return none, err
	}
	switch {
	case why == "":
		return none, nil
	case len(w.Disks)+len(w.Search) == 0:
		return zpool.Stands(provision.PoolAwaitsDisks, "there is no zpool %s: %s", name, why).Outcome, nil
	}
	return zpool.Stands(provision.PoolTroubled, "zpool %s is not changed: %s", name, why).Outcome, nil
}

// misfits says why the programs of ZFS do not go with the kernel's module. On a machine
// without zpools checkTools has not asked them yet.
func (m *manager) misfits(ctx context.Context, module string) (string, error) {
	m.engine.Lock()
	tools := m.state.tools
	m.engine.Unlock()
	if tools.module == module {
		return tools.problem, nil
	}
	out, err := m.ask(ctx, m.tool.Command("version"), func() {})
	if err != nil {
		return "", fmt.Errorf("asking the programs of ZFS for their version: %w", err)
	}
	return misfit(string(out), module), nil
}

// reread asks the kernel which zpools there are, and ZFS for a report of one of them. The
// caller holds the lock of that zpool.
func (m *manager) reread(ctx context.Context, name string) error {
	pools, err := m.config.Devices.Pools()
	if err != nil {
		return fmt.Errorf("%w: listing zpools: %w", provision.ErrUnavailable, err)
	}
	if m.state.notice(pools) {
		m.engine.Changed.Set()
	}
	m.refresh(ctx, name)
	return context.Cause(ctx)
}

// change runs a command and then reads the zpool again, also when the command failed.
func (m *manager) change(ctx context.Context, name string, c run.Command) error {
	ended := m.engine.Begin(name, name)
	_, failure := m.config.Runner.Change(c)
	ended()
	err := m.reread(ctx, name)
	m.engine.Changed.Set()
	if failure != nil {
		return fmt.Errorf("changing zpool %s: %w", name, failure)
	}
	return err
}

// takeDisks takes one vdev after the other, so that a vdev which ZFS refuses holds up no
// other.
func (m *manager) takeDisks(ctx context.Context, name string, w provision.PoolWish, o provision.Outcome) (none provision.Outcome, _ error) {
	if m.config.Disks == nil {
		return none, fmt.Errorf("%w: no disks are lent to make zpool %s of", provision.ErrUnsupported, name)
	}
	if !m.config.Devices.Udev() {
		return zpool.Stands(provision.PoolTroubled, "zpool %s is not changed: udev does not run on the node, and zpool waits for it when it labels disks", name).Outcome, nil
	}
	var taken []string
	var refusals, failures []error
	for disks := range slices.Chunk(w.Disks, w.Layout.Width) {
		if m.judge(name, w, justNow).Act != zpool.TakeDisk {
			break // the zpool must not be changed any more
		}
		nodes, refused, err := m.takeVdev(ctx, name, w.Layout, disks)
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
		return zpool.Stands(provision.DisksRefused, "no disk was taken for zpool %s: %v", name, why).Outcome, nil
	}
	o.Message += " of " + strings.Join(taken, ", ")
	if why != nil {
		o.Message += fmt.Sprintf("; others were not taken: %v", why)
	}
	return o, nil
}

// takeVdev makes a zpool of a vdev, or adds the vdev to it, if all disks of the vdev are lent.
func (m *manager) takeVdev(ctx context.Context, name string, z provision.Layout, disks []string) (taken []string, refused []error, err error) {
	refused, err = m.config.Disks.Lend(ctx, disks, func(nodes []string) error {
		if len(nodes) < len(disks) {
			return nil
		}
		names := m.aliases(nodes)
		there := false
		m.engine.With(name, func(z *zpool.Facts) { there = z != nil })
		command := m.poolTool.MakeZpoolCommand(name, z, names)
		if there {
			command = m.poolTool.GrowZpoolCommand(name, z, names)
		}
		if err := m.change(ctx, name, command); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
		}
		taken = names
		m.findings.edit(name, func(f *zpool.Finding) { f.Mark, f.Marked, f.Seen = zpool.MarkOf(z), m.config.Now(), true })
		return nil
	})
	return taken, refused, err
}
