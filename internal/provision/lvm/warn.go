package lvm

import (
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

var _ provision.Warner = (*Provisioner)(nil)

// advice is the setting that keeps the machine's own LVM from the devices that pods write to.
const advice = `devices { global_filter = [ "r|^/dev/loop|", "r|^/dev/zd[0-9]|" ] } in /etc/lvm/lvm.conf, as docs/pools.md says`

// Warnings implements provision.Warner.
func (p *Provisioner) Warnings() (warnings []provision.Warning) {
	p.engine.Lock()
	strangers, groups := slices.Clone(p.state.strangers), len(p.engine.Units()) > 0
	p.engine.Unlock()
	for _, s := range strangers {
		warnings = append(warnings, provision.Warning{Reason: v1alpha1.ReasonVolumeGroupOfPod, Message: s.String() +
			". Berth does not use it; the machine's own LVM may, and then holds the pod's volume: deactivate it (vgchange --activate n --select vg_uuid=" + s.UUID + "), and set " + advice})
	}
	if device := p.guard.reads(); groups && device != "" {
		warnings = append(warnings, provision.Warning{Reason: v1alpha1.ReasonLVMReadsPodDevices, Message: "the machine's own LVM reads " + device +
			", and with devices of that kind what pods write to raw block volumes: its commands and udev may take that for a volume group of the machine. Set " + advice})
	}
	if device := p.guard.readsRemote(groups); device != "" {
		warnings = append(warnings, provision.Warning{Reason: v1alpha1.ReasonLVMReadsPodDevices, Message: "the machine's own LVM reads " + device +
			", which is reached over a network, as the volumes of pods are. Berth leaves such disks out, and a volume group on them is no pool. " +
			"Have LVM use a devices file that lists the machine's own disks alone, as docs/pools.md says: then Berth uses those of a network, too"})
	}
	return warnings
}
