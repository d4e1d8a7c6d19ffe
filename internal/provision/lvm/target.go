package lvm

import (
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
)

// modules are the kernel's modules by the targets that they provide.
var modules = map[string]string{group.PoolTarget: "dm-thin-pool", group.CowTarget: "dm-snapshot"}

var errNoTarget = errors.New("the node's kernel lacks a target of the device mapper")

// provide has the kernel load the module of a target, and returns why the kernel lacks the
// target. LVM in a container could not load it: it would start modprobe, which only the machine
// has.
func (p *waker) provide(target string) error {
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

// explained returns why an LVM command failed that needs a target: lacking if the kernel has no
// such target, else failure.
func explained(failure, lacking error) error {
	if failure != nil && errors.Is(lacking, errNoTarget) {
		return lacking
	}
	return failure
}
