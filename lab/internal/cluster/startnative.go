package cluster

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/native"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/progress"
)

// startNative makes a native node if there is none, powers it on and loads its images.
// Loading takes no longer here than preparing an image disk would.
func (c *Cluster) startNative(ctx context.Context, m materials, net *network.Network, config controlplane.Config, index int) error {
	name := c.nodeName(index)
	machine, err := native.Open(c.paths.node(name))
	if err == nil && machine.Power() != guest.Off {
		return nil
	}
	return c.step(name+": starting", func(step progress.Step) error {
		if errors.Is(err, guest.ErrNotExist) {
			machine, err = c.makeNative(ctx, m, net, config, index)
		}
		if err != nil {
			return err
		}
		if err := machine.PowerOn(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("not started after %v", bootLimit))
		defer cancel()
		if err := machine.WaitReady(ctx); err != nil {
			return err
		}
		return loadMissing(ctx, machine, m.archives, step)
	})
}

func (c *Cluster) makeNative(ctx context.Context, m materials, net *network.Network, config controlplane.Config, index int) (*native.Machine, error) {
	settings, err := c.nodeConfig(ctx, net, config, index)
	if err != nil {
		return nil, err
	}
	settings.Cgroup = c.cgroup(settings.Name)
	seed, err := node.Seed(settings)
	if err != nil {
		return nil, err
	}
	var disks []guest.Disk
	if s := c.Settings(); !settings.Control {
		disks = guest.NewDisks(s.Disks, s.DiskSize)
	}
	return native.Create(c.paths.node(settings.Name), native.Spec{
		Name: settings.Name, Network: c.paths.network(), Address: settings.Address, MAC: settings.MAC,
		Programs: m.programs.Files(), Services: seed.Plan.Services, Disks: disks,
		Cgroup: settings.Cgroup, Files: seed.Files,
	})
}

// cgroup returns the name of a node's cgroup. It contains the network's name: no two
// clusters of a machine share either.
func (c *Cluster) cgroup(node string) string { return "/berth-lab-" + c.paths.network() + "/" + node }
