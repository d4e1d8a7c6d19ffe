package simcloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

// operation is one change of a machine.
type operation struct {
	machine        string
	attach, detach []string
	ends           time.Time
	over           bool
	failed         map[string]error
	// spoiled is the fault that this operation meets.
	spoiled Spoil
}

// nothing is how long an operation takes that finds nothing to do.
const nothing = time.Second

// Change implements shared.Cloud.
func (c *Cloud) Change(ctx context.Context, node string, attach, detach []shared.Disk) (name string, err error) {
	err = c.change(ctx, "change", node, func() error {
		o := &operation{machine: node, attach: handles(attach), detach: handles(detach), failed: map[string]error{}}
		if err := c.accepts(o); err != nil {
			return err
		}
		now, m := c.c.Clock.Now(), c.machines[node]
		o.ends = now.Add(c.lasts(m, o))
		o.spoiled, c.spoil = c.spoil, Spoil{}
		c.begun++
		name = fmt.Sprintf("operation-%d", c.begun)
		c.operations[name], m.running = o, o
		c.tally.Largest = max(c.tally.Largest, len(attach)+len(detach))
		return nil
	})
	if err != nil {
		return "", err
	}
	return name, nil
}

func handles(disks []shared.Disk) (all []string) {
	for _, d := range disks {
		all = append(all, d.Handle)
	}
	return all
}

// accepts refuses an operation as a whole.
func (c *Cloud) accepts(o *operation) error {
	m := c.machines[o.machine]
	switch {
	case m == nil:
		return fmt.Errorf("%w: there is no machine %s", provision.ErrNotFound, o.machine)
	case m.running != nil:
		return &shared.LaterError{}
	}
	used := len(m.slots)
	for _, handle := range o.detach {
		if m.has(handle) {
			used--
		}
	}
	for _, handle := range o.attach {
		if c.disks[handle] == nil {
			return fmt.Errorf("%w: there is no disk %s", provision.ErrNotFound, handle)
		}
		if !m.has(handle) {
			used++
		}
	}
	if used > c.c.Slots {
		return fmt.Errorf("%w: machine %s has %d slots for disks, and %d are asked for", provision.ErrNoSpace, o.machine, c.c.Slots, used)
	}
	return nil
}

func (c *Cloud) lasts(m *machine, o *operation) time.Duration {
	lasts := nothing
	for _, handle := range o.detach {
		if m.has(handle) {
			lasts = max(lasts, c.c.Detach)
		}
	}
	for _, handle := range o.attach {
		if !m.has(handle) {
			lasts = max(lasts, c.c.Attach)
		}
	}
	return lasts
}

// Progress implements shared.Cloud.
func (c *Cloud) Progress(ctx context.Context, node, name string) (out shared.Progress, err error) {
	err = c.read(ctx, "progress", node, func() error {
		o := c.operations[name]
		if o == nil {
			return fmt.Errorf("%w: there is no operation %s", provision.ErrNotFound, name)
		}
		out = shared.Progress{Running: !o.over, Failed: maps.Clone(o.failed)}
		return nil
	})
	if err != nil {
		return shared.Progress{}, err
	}
	return out, nil
}

// Attached implements shared.Cloud.
func (c *Cloud) Attached(ctx context.Context, node string) (disks []string, err error) {
	err = c.read(ctx, "attached", node, func() error {
		m := c.machines[node]
		if m == nil {
			return fmt.Errorf("%w: there is no machine %s", provision.ErrNotFound, node)
		}
		at := c.c.Clock.Now().Add(-c.c.Lag - c.lag)
		for _, l := range m.past {
			if !l.from.After(at) {
				disks = slices.Clone(l.disks)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return disks, nil
}

// settle lets happen what was due. The caller has the lock.
func (c *Cloud) settle() {
	now := c.c.Clock.Now()
	for _, name := range slices.Sorted(maps.Keys(c.machines)) {
		m := c.machines[name]
		if o := m.running; o != nil && !o.ends.After(now) {
			m.running, o.over = nil, true
			c.finish(m, o)
			m.note(o.ends)
		}
		for handle, at := range m.appearing {
			if !at.After(now) {
				delete(m.appearing, handle)
				c.disks[handle].plug(name)
			}
		}
	}
}

// finish lets an operation have its effect.
func (c *Cloud) finish(m *machine, o *operation) {
	for _, handle := range o.detach {
		if o.spoiled.Silent {
			continue
		}
		if o.spoiled.meets(handle) && !o.spoiled.Happens {
			o.failed[handle] = o.spoiled.Err
			continue
		}
		c.take(o.machine, handle)
	}
	for _, handle := range o.attach {
		d := c.disks[handle]
		switch {
		case o.spoiled.meets(handle) && !o.spoiled.Happens:
			o.failed[handle] = o.spoiled.Err
			continue
		case m.has(handle):
		case d == nil:
			o.failed[handle] = fmt.Errorf("%w: disk %s was deleted", provision.ErrNotFound, handle)
			continue
		case len(c.attachedTo(handle)) >= d.shares:
			o.failed[handle] = fmt.Errorf("%w: disk %s has %d shares, and is attached to %q", provision.ErrConflict, handle, d.shares, c.attachedTo(handle))
			continue
		case !c.put(o.machine, handle, o.ends): // another disk was to go, and has not
			o.failed[handle] = fmt.Errorf("%w: machine %s has no free slot", provision.ErrNoSpace, o.machine)
			continue
		}
	}
	for _, handle := range slices.Concat(o.attach, o.detach) {
		if o.spoiled.meets(handle) && o.spoiled.Happens {
			o.failed[handle] = o.spoiled.Err
		}
	}
}

// put attaches a disk to a machine if it has a free slot, and take takes it off.
func (c *Cloud) put(name, handle string, at time.Time) bool {
	m := c.machines[name]
	lun, free := m.free(c.c.Slots)
	if free {
		m.slots[lun] = handle
		m.appearing[handle] = at.Add(c.c.Appear)
	}
	return free
}

func (c *Cloud) take(name, handle string) {
	m := c.machines[name]
	maps.DeleteFunc(m.slots, func(_ int, has string) bool { return has == handle })
	delete(m.appearing, handle)
	c.disks[handle].unplug(name)
}
