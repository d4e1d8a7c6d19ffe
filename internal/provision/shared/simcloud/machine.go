package simcloud

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// Machine are the cloud's disks as the kernel of a machine sees them, without any word of the cloud: a device is
// there or it is not. Attach looks for a device that the kernel has forgotten, and Detach makes it forget one.
func (c *Cloud) Machine(name string) shared.Disks {
	return shared.Finder{
		Promises: shared.Capabilities{Abort: true, Persistent: true, Types: []shared.Type{shared.WriteExclusive, shared.WriteExclusiveRegistrantsOnly}},
		Find: func(d shared.Disk) (shared.Disks, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.settle()
			n := c.disks[d.Handle].node(name)
			if n == nil {
				return nil, fmt.Errorf("%w: there is no disk %s", provision.ErrUnavailable, d.Handle)
			}
			return kernel{n, c, name}, nil
		},
	}
}

// Open opens a disk's device on a machine, for a writer that believes to be in an epoch.
func (c *Cloud) Open(name, handle string, e lineage.Epoch) (*simdisk.Device, error) {
	c.mu.Lock()
	n := c.disks[handle].node(name)
	c.mu.Unlock()
	return n.Open(e)
}

// Kernel is a disk as the kernel of a machine has it, with pages that wait to be written.
func (c *Cloud) Kernel(name, handle string) *simdisk.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disks[handle].node(name)
}

// node is the disk as the kernel of a machine has it; nil if there is no disk.
func (d *disk) node(machine string) *simdisk.Node {
	if d == nil {
		return nil
	}
	if d.plugs[machine] == nil {
		d.plugs[machine] = d.target.Node(machine)
	}
	return d.plugs[machine]
}

// kernel is a disk on a machine whose kernel does not attach by itself.
type kernel struct {
	*simdisk.Node
	c    *Cloud
	name string
}

// Attach implements shared.Disks.
func (k kernel) Attach(ctx context.Context, d shared.Disk) error {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	m := k.c.machines[k.name]
	if m == nil || !m.has(d.Handle) {
		return nil
	}
	if _, later := m.appearing[d.Handle]; later {
		return nil
	}
	return k.Node.Attach(ctx, d)
}

// plug lets the device of an attached disk appear, and unplug takes it away, whatever has it open. A target in
// memory fails no change, and a directory that does spoils the test that has it.
func (d *disk) plug(machine string) {
	if d != nil {
		_ = d.socket.plug(machine)
	}
}

func (d *disk) unplug(machine string) {
	if d != nil {
		_ = d.socket.unplug(machine)
	}
}

var _ shared.Disks = kernel{}
