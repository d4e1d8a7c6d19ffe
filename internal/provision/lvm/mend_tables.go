package lvm

import (
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/internal/run"
)

// Which table a suspended device is resumed with matters. LVM loads new tables before it
// suspends, and records the change only then: a command that dies in between leaves tables
// loaded of which LVM knows nothing, with a thin pool's data on extents that are free for
// others. What LVM has recorded wins. It loads that itself (lvchange --refresh), but only
// where it differs from what is in use, and then puts into use whatever is loaded. So what
// is loaded is dropped first. To resume the devices alone (dmsetup resume) would use what is
// loaded, recorded or not.

// mapper are the device mapper's devices at one moment, and whether they are suspended.
type mapper map[string]bool

// mapped asks the kernel. What it does not tell is not known to be suspended.
func (p *Provisioner) mapped() mapper {
	devices, err := p.config.Devices.Mapped()
	if err != nil {
		return nil
	}
	return devices
}

// parts matches what follows in the names of the devices that a logical volume is made of:
// LVM keeps these words out of the names of all others.
var parts = regexp.MustCompile(`^(_(tdata|tmeta|vdata|cdata|cmeta|cvol|corig|wcorig|mlog|iorig|imeta|[rm]image_[0-9]+|rmeta_[0-9]+))*(-[a-z]+)?$`)

// of returns the devices that a logical volume is made of, its own first.
func (m mapper) of(group, lv string) (names []string) {
	for name := range m {
		if rest, found := strings.CutPrefix(name, mappingName(group, lv)); found && parts.MatchString(rest) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// suspends says whether anything that a logical volume is made of is suspended.
func (m mapper) suspends(group, lv string) bool {
	return slices.ContainsFunc(m.of(group, lv), func(name string) bool { return m[name] })
}

// reload resumes what is suspended of a group's volumes and thin pools, with what LVM has
// recorded of them.
func (p *Provisioner) reload(name string, ids, pools []string) error {
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
	// LVM refreshes no pool that is live through its volumes alone, and resumes it when it is
	// activated by itself.
	var asleep, awake []string
	p.state.with(name, func(g *group) { asleep, awake = g.asleep(pools) })
	for _, c := range []struct {
		lvs     []string
		command func(group string, lvs ...string) run.Command
	}{
		{asleep, p.config.activateCommand},
		{slices.Concat(awake, ids), p.config.resumeCommand},
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

// asleep tells those of some thin pools that are not active by themselves from the others.
func (g *group) asleep(pools []string) (asleep, awake []string) {
	for _, name := range pools {
		switch {
		case g == nil || g.pools[name] == nil:
		case g.pools[name].active:
			awake = append(awake, name)
		default:
			asleep = append(asleep, name)
		}
	}
	return asleep, awake
}

// suspendedPools returns the thin pools that are; none of a group that is nil.
func (g *group) suspendedPools() (names []string) {
	if g == nil || !g.changeable() {
		return nil
	}
	for name, p := range g.pools {
		if p.suspended {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func suspendedPool(name string) string {
	return "the thin pool is suspended, and whoever writes to its volumes waits: resume it (lvchange --refresh " + name + ")"
}

// noticeSuspended has groups read again in which a thin pool is suspended that was not, or
// the other way round. A change by others suspends one too, for a moment: LVM's report, which
// waits for the end of it, tells the one from the other.
func (p *Provisioner) noticeSuspended() {
	pools := p.state.thinPools(isIdle)
	if len(pools) == 0 {
		return
	}
	now := p.mapped()
	for name, all := range pools {
		changed := false
		p.state.with(name, func(g *group) {
			for _, thin := range all {
				if g == nil || g.pools[thin] == nil || g.pools[thin].suspended == now.suspends(g.name, thin) {
					continue
				}
				changed = true
			}
			if changed {
				p.state.noticed(g)
			}
		})
		if changed {
			p.signal()
		}
	}
}
