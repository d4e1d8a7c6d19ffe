package lvm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth.dev/berth/internal/provision"
)

// A device node proves nothing. In a container LVM makes the nodes itself; where the machine's
// LVM, which leaves that to udev, deactivates such a volume, they stay and lead to whatever
// bears the number next. So a volume is used by its identity alone, and a node that leads
// elsewhere is made anew.

// mappingName is LVM's name of a logical volume for the device mapper.
func mappingName(group, lv string) string {
	double := func(s string) string { return strings.ReplaceAll(s, "-", "--") }
	return double(group) + "-" + double(lv)
}

// mappingUUID is LVM's uuid of a logical volume for the device mapper; empty if LVM did not
// report one.
func mappingUUID(group, lv string) string {
	if group == "" || lv == "" {
		return ""
	}
	return "LVM-" + strings.ReplaceAll(group+lv, "-", "")
}

// identity of a logical volume's device; empty while it is not known.
func (g *group) identity(lv string) provision.Identity {
	if g == nil || g.uuids[lv] == "" {
		return ""
	}
	return provision.MappedIdentity(mappingName(g.name, lv), g.uuids[lv])
}

// made returns the uuid of a device that was just made, as the kernel tells it; empty of none.
// What it does not tell, or what is not this group's, comes with the next report.
func (p *Provisioner) made(name, lv string) (uuid string) {
	if lv == "" {
		return ""
	}
	uuid, err := p.config.Devices.UUID(mappingName(name, lv))
	p.state.with(name, func(g *group) {
		if err != nil || g == nil || !strings.HasPrefix(uuid, "LVM-"+strings.ReplaceAll(g.uuid, "-", "")) {
			uuid = ""
		}
	})
	return uuid
}

// device returns the path and the identity of a logical volume's device.
func (p *Provisioner) device(name, lv string) (path string, is provision.Identity) {
	p.state.with(name, func(g *group) {
		if g != nil {
			path, is = g.devicePath(lv), g.identity(lv)
		}
	})
	return path, is
}

// reach makes the node of a logical volume lead to its device, which need not be active, for
// who holds the group's lock. An error says what it leads to.
func (p *Provisioner) reach(ctx context.Context, name, lv string) error {
	path, is := p.device(name, lv)
	if is == "" { // the kernel did not tell when it was made
		p.refresh(ctx, name)
		path, is = p.device(name, lv)
	}
	if p.config.Devices.Leads(path, is) == nil {
		return nil // by now
	}
	if err := p.activateLocked(name, lv); err != nil {
		return fmt.Errorf("it cannot be activated: %w", err)
	}
	if p.config.Devices.Leads(path, is) == nil {
		return nil
	}
	// It was active, and LVM leaves the nodes of such a volume as they are.
	_, failure := p.change(p.config.nodesCommand(name, lv))
	if err := p.config.Devices.Leads(path, is); err != nil {
		return errors.Join(fmt.Errorf("it is active, and its node is wrong: have the nodes made anew (vgmknodes %s/%s): %w", name, lv, err), failure)
	}
	return nil
}
