package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/native"
	"berth.dev/berth/lab/internal/progress"
)

// Node is one node of a cluster: its machine, its disks and its link to the network. Each change of
// these holds the cluster's lock.
type Node struct {
	cluster *Cluster
	name    string
}

// native reports whether the node is part of this machine.
func (n Node) native() bool { return n.cluster.Settings().native(n.name) }

// open returns the node's machine, or [guest.ErrNotExist].
func (n Node) open() (Machine, error) {
	if n.native() {
		return opened(native.Open(n.cluster.paths.node(n.name)))
	}
	return opened(guest.Open(n.cluster.paths.node(n.name)))
}

// Machine returns the node's machine, or an error that says what is missing.
func (n Node) Machine() (Machine, error) {
	names := n.cluster.Settings().NodeNames()
	if !slices.Contains(names, n.name) {
		return nil, fmt.Errorf("there is no node %q: the nodes are %s", n.name, strings.Join(names, ", "))
	}
	m, err := n.open()
	if errors.Is(err, guest.ErrNotExist) {
		return nil, fmt.Errorf("node %s was not made yet: `lab up` completes the cluster", n.name)
	}
	return m, err
}

// change runs f with the machine while no other command changes the cluster.
func (n Node) change(f func(Machine) error) error {
	return n.cluster.change(func() error {
		m, err := n.Machine()
		if err != nil {
			return err
		}
		return f(m)
	})
}

// PowerOff switches the node off at once, as if its plug were pulled.
func (n Node) PowerOff(ctx context.Context) error {
	return n.change(func(m Machine) error { return m.PowerOff(ctx) })
}

// PowerOn starts the node and waits until it answers; its kubelet is ready some
// seconds later.
func (n Node) PowerOn(ctx context.Context) error {
	return n.change(func(m Machine) error {
		return n.cluster.step(n.name+": booting", func(progress.Step) error {
			if err := m.PowerOn(ctx); err != nil {
				return err
			}
			return m.WaitReady(ctx)
		})
	})
}

// AddDisk adds an empty disk to the node.
func (n Node) AddDisk(ctx context.Context, size int64) (disk guest.Disk, err error) {
	err = n.change(func(m Machine) error {
		disk, err = m.AddDisk(ctx, size)
		return err
	})
	return disk, err
}

// RemoveDisk pulls a disk out of the node, in use or not. It deletes the disk, unless other
// nodes share it.
func (n Node) RemoveDisk(ctx context.Context, disk string) error {
	return n.change(func(m Machine) error {
		all := m.Disks()
		if err := m.RemoveDisk(ctx, disk); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(d guest.Disk) bool { return d.Name == disk })
		if i < 0 || all[i].File == "" {
			return nil
		}
		return n.cluster.SharedDisks().deleteUnshared(all[i])
	})
}
