package lvm

import (
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
)

// The device mapper's names for the targets that not every kernel has loaded: that of thin
// pools, which comes with that of thin volumes, and that of copy-on-write snapshots.
const (
	poolTarget = "thin-pool"
	cowTarget  = "snapshot"
)

// modules are the kernel's that have the targets.
var modules = map[string]string{poolTarget: "dm-thin-pool", cowTarget: "dm-snapshot"}

var errNoTarget = errors.New("the node's kernel lacks a target of the device mapper")

// provide has the kernel load what a target needs, and returns why it lacks it. From within a
// container LVM could not: it would start modprobe, which is the machine's and not there.
func (p *Provisioner) provide(target string) error {
	switch able, err := p.config.Devices.Provides(target); {
	case err != nil:
		return fmt.Errorf("%w: asking the kernel for the device mapper's target %s: %w", provision.ErrUnavailable, target, err)
	case !able:
		module := modules[target]
		return fmt.Errorf("%w: %w, %s, and could not load its module %s: load it on the node (modprobe %s), and at each start (echo %s > /etc/modules-load.d/%s.conf)",
			provision.ErrUnavailable, errNoTarget, target, module, module, module, module)
	}
	return nil
}

// explained is why LVM failed that needed a target: for want of that, if it is lacking.
func explained(failure, lacking error) error {
	if failure != nil && errors.Is(lacking, errNoTarget) {
		return lacking
	}
	return failure
}
