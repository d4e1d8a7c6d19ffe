package lvm

import (
	"slices"

	"berth.dev/berth/internal/provision"
)

var _ provision.Warner = (*Provisioner)(nil)

// advice is what keeps the machine's own LVM from what pods write.
const advice = `devices { global_filter = [ "r|^/dev/loop|", "r|^/dev/zd[0-9]|" ] } in /etc/lvm/lvm.conf, as docs/pools.md says`

// someLoops stand for those that the kubelet makes, and someZvols for those of the machine.
var (
	someLoops = []string{"/dev/loop0", "/dev/loop7", "/dev/loop31"}
	someZvols = []string{"/dev/zd0", "/dev/zd16"}
)

// Warnings implements provision.Warner.
func (p *Provisioner) Warnings() (warnings []provision.Warning) {
	strangers, groups := p.state.strange()
	for _, s := range strangers {
		warnings = append(warnings, provision.Warning{Reason: provision.WroteGroup, Message: s.String() +
			". Berth does not use it; the machine's own LVM may, and then holds the pod's volume: deactivate it (vgchange --activate n --select vg_uuid=" + s.uuid + "), and set " + advice})
	}
	if device := p.guard.reads(); groups && device != "" {
		warnings = append(warnings, provision.Warning{Reason: provision.ReadsPods, Message: "the machine's own LVM reads " + device +
			", and with devices of that kind what pods write to raw block volumes: its commands and udev may take that for a volume group of the machine. Set " + advice})
	}
	return warnings
}

// strange returns the groups that pods wrote, and whether there are any of the node.
func (s *state) strange() (strangers []stranger, groups bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strangers), len(s.groups) > 0
}
