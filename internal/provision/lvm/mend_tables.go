package lvm

import (
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/run"
)

// A suspended device must be resumed with the right table. LVM loads new tables before it
// suspends, and records the change only then. A command that dies in between leaves loaded tables
// of which LVM knows nothing, with a thin pool's data on extents that are free for others. The
// table that LVM has recorded is the right one. LVM loads it itself (lvchange --refresh), but
// only where it differs from the table in use, and then puts any loaded table into use. So Berth
// first drops the loaded table. To resume the devices alone (dmsetup resume) would use the loaded
// table, recorded or not.

// mapper are the device mapper's devices at one moment, by their names.
type mapper map[string]group.Mapping

// mapped asks the kernel. If the kernel does not tell, no device counts as suspended.
func (p *reader) mapped() mapper {
	devices, err := p.config.Devices.Mapped()
	if err != nil {
		return nil
	}
	return devices
}

// parts matches the suffix behind the name of a logical volume in the names of the devices that
// it is made of. LVM does not allow these words in the names of other logical volumes.
var parts = regexp.MustCompile(`^(_(tdata|tmeta|vdata|cdata|cmeta|cvol|corig|wcorig|mlog|iorig|imeta|[rm]image_[0-9]+|rmeta_[0-9]+))*(-[a-z]+)?$`)

// of returns the devices that a logical volume is made of, its own first.
func (m mapper) of(name, lv string) (names []string) {
	for device := range m {
		if rest, found := strings.CutPrefix(device, group.MappingName(name, lv)); found && parts.MatchString(rest) {
			names = append(names, device)
		}
	}
	slices.Sort(names)
	return names
}

// suspends says whether any device that a logical volume is made of is suspended.
func (m mapper) suspends(name, lv string) bool {
	return slices.ContainsFunc(m.of(name, lv), func(name string) bool { return m[name].Suspended })
}

// reload resumes the suspended volumes and thin pools of a group with the tables that LVM has
// recorded.
func (p *waker) reload(name string, ids, pools []string) error {
	now, err := p.config.Devices.Mapped()
	if err != nil {
		return err
	}
	resumed := func(lv string) bool { return !mapper(now).suspends(name, lv) } // by others, meanwhile
	ids, pools = slices.DeleteFunc(slices.Clone(ids), resumed), slices.DeleteFunc(slices.Clone(pools), resumed)
	for _, lv := range slices.Concat(pools, ids) {
		for _, device := range mapper(now).of(name, lv) {
			if err := p.config.Devices.Unload(device); err != nil {
				return err
			}
		}
	}
	// LVM does not refresh a pool that is live only through its volumes. It resumes such a pool
	// when the pool itself is activated.
	var asleep, awake []string
	p.engine.With(name, func(g *group.Facts) {
		if g != nil {
			asleep, awake = g.Pools.Inactive(pools), g.Pools.Active(pools)
		}
	})
	for _, c := range []struct {
		lvs     []string
		command func(group string, lvs ...string) run.Command
	}{
		{asleep, p.tool.ActivateCommand},
		{slices.Concat(awake, ids), p.tool.ResumeCommand},
	} {
		if len(c.lvs) == 0 {
			continue
		}
		if _, err := p.change(c.command(name, c.lvs...)); err != nil {
			return err
		}
	}
	return nil
}

// noticeSuspended marks a group to be read again if one of its thin pools was suspended or
// resumed since. A change by others also suspends a pool, for a moment. LVM's report waits for
// the end of such a change, so it tells the two cases apart.
func (p *waker) noticeSuspended() {
	pools := p.thinPools(isIdle)
	if len(pools) == 0 {
		return
	}
	now := p.mapped()
	for name, all := range pools {
		changed := false
		p.engine.With(name, func(g *group.Facts) {
			for _, thin := range all {
				if g == nil || g.Pools[thin] == nil || g.Pools[thin].Suspended == now.suspends(g.Name, thin) {
					continue
				}
				changed = true
			}
			if changed {
				p.engine.Touch(g)
			}
		})
		if changed {
			p.engine.Changed.Set()
		}
	}
}
