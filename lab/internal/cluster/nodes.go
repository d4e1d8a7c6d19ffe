package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/progress"
)

// controlNode is the name of the node that [Settings.Control] asks for.
const controlNode = "control"

// Nodes returns the names of the cluster's nodes.
func (c *Cluster) Nodes() []string {
	settings := c.Settings()
	var names []string
	for i := range settings.Nodes {
		names = append(names, fmt.Sprintf("node%d", i+1))
	}
	if settings.Control {
		names = append(names, controlNode)
	}
	return names
}

// nodeName returns the name of the node with an index from 1.
func (c *Cluster) nodeName(index int) string { return c.Nodes()[index-1] }

// Machine returns the machine of a node.
func (c *Cluster) Machine(node string) (Machine, error) {
	names := c.Nodes()
	if !slices.Contains(names, node) {
		return nil, fmt.Errorf("there is no node %q: the nodes are %s", node, strings.Join(names, ", "))
	}
	m, err := c.open(node)
	if errors.Is(err, guest.ErrNotExist) {
		return nil, fmt.Errorf("node %s was not made yet: `lab up` completes the cluster", node)
	}
	return m, err
}

// withMachine changes a node while no other command changes the cluster.
func (c *Cluster) withMachine(node string, f func(Machine) error) error {
	return c.change(func() error {
		m, err := c.Machine(node)
		if err != nil {
			return err
		}
		return f(m)
	})
}

// PowerOff switches a node off at once, as if its plug were pulled.
func (c *Cluster) PowerOff(ctx context.Context, node string) error {
	return c.withMachine(node, func(m Machine) error { return m.PowerOff(ctx) })
}

// PowerOn starts a node and waits until it answers; its kubelet is ready some
// seconds later.
func (c *Cluster) PowerOn(ctx context.Context, node string) error {
	return c.withMachine(node, func(m Machine) error {
		return c.step(node+": booting", func(progress.Step) error {
			if err := m.PowerOn(ctx); err != nil {
				return err
			}
			return m.WaitReady(ctx)
		})
	})
}

// AddDisk adds an empty disk to a node.
func (c *Cluster) AddDisk(ctx context.Context, node string, size int64) (disk guest.Disk, err error) {
	err = c.withMachine(node, func(m Machine) error {
		disk, err = m.AddDisk(ctx, size)
		return err
	})
	return disk, err
}

// RemoveDisk pulls a disk out of a node, in use or not. It deletes the disk, unless other
// nodes share it.
func (c *Cluster) RemoveDisk(ctx context.Context, node, disk string) error {
	return c.withMachine(node, func(m Machine) error {
		all := m.Disks()
		if err := m.RemoveDisk(ctx, disk); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(d guest.Disk) bool { return d.Name == disk })
		if i < 0 || all[i].File == "" {
			return nil
		}
		return c.deleteUnshared(all[i])
	})
}
