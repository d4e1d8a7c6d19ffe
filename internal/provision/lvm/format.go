package lvm

import (
	"context"
	"fmt"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Format implements provision.Provisioner. Only the volume is locked while the
// filesystem is made: that may take long, and the group is needed by others.
func (p *Provisioner) Format(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	if err := r.Check(); err != nil {
		return provision.Volume{}, err
	}
	unlock, err := p.volumes.Lock(ctx, r.ID)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		return p.formatLocked(ctx, r)
	})
}

func (p *Provisioner) formatLocked(ctx context.Context, r provision.FormatRequest) (provision.Volume, error) {
	v, err := p.Get(ctx, r.ID) // active, with its device node
	if err != nil {
		return provision.Volume{}, err
	}
	if met, err := r.Met(v); met || err != nil {
		return v, err
	}
	if err := p.confirm(v); err != nil {
		return provision.Volume{}, err
	}
	if err := p.config.Mkfs(ctx, v.Device, r.Filesystem, r.Options); err != nil {
		return provision.Volume{}, fmt.Errorf("making %s on volume %s: %w", r.Filesystem, v.ID, err)
	}
	if err := p.record(ctx, v, r.Filesystem); err != nil {
		return provision.Volume{}, fmt.Errorf("recording %s on volume %s: %w", r.Filesystem, v.ID, err)
	}
	group, _ := split(v.Pool)
	return p.view(group, v.ID)
}

// confirm makes sure that the device node is the volume's: a stale node would turn
// mkfs on somebody else's data.
func (p *Provisioner) confirm(v provision.Volume) error {
	name, uuid, err := p.config.Devices.Mapping(v.Device)
	if err != nil {
		return fmt.Errorf("%w: looking at device %s: %w", provision.ErrUnavailable, v.Device, err)
	}
	var groupUUID string
	inGroup, _ := split(v.Pool)
	p.state.with(inGroup, func(g *group) {
		if g != nil {
			groupUUID = g.uuid
		}
	})
	if name != mappingName(inGroup, v.ID) || !strings.HasPrefix(uuid, mappingPrefix(groupUUID)) {
		return fmt.Errorf("%w: device %s is mapped as %s (%s), which is not volume %s", provision.ErrConflict, v.Device, name, uuid, v.ID)
	}
	return nil
}

// mappingName is LVM's name of a volume for the device mapper.
func mappingName(group, id string) string {
	double := func(s string) string { return strings.ReplaceAll(s, "-", "--") }
	return double(group) + "-" + double(id)
}

// mappingPrefix begins the device mapper's uuid of every volume of a group.
func mappingPrefix(groupUUID string) string { return "LVM-" + strings.ReplaceAll(groupUUID, "-", "") }

// record writes down, with the volume, that it is formatted.
func (p *Provisioner) record(ctx context.Context, v provision.Volume, filesystem string) error {
	name, _ := split(v.Pool)
	unlock, err := p.groups.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	return p.carryOutLocked(ctx, change{
		group: name, id: v.ID,
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planRecord(v.ID, filesystem) },
		command: func(int64) run.Command { return p.config.tagCommand(name, v.ID, tagFS+filesystem) },
		learn: func(g *group, _ int64) {
			if known := g.volumes[v.ID]; known != nil {
				known.filesystem = filesystem
			}
		},
	})
}
