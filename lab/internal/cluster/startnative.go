package cluster

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/native"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/progress"
)

// startNative makes a native node if there is none, powers it on and loads its images.
// Loading takes no longer here than preparing an image disk would.
func (s starter) startNative(ctx context.Context, n Node, index int) error {
	machine, err := native.Open(s.cluster.paths.node(n.name))
	if err == nil && machine.Power() != guest.Off {
		return nil
	}
	return s.cluster.step(n.name+": starting", func(step progress.Step) error {
		if errors.Is(err, guest.ErrNotExist) {
			machine, err = s.makeNative(ctx, n, index)
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
		return loadMissing(ctx, machine, s.materials.archives, step)
	})
}

func (s starter) makeNative(ctx context.Context, n Node, index int) (*native.Machine, error) {
	config, err := s.nodeConfig(ctx, n, index)
	if err != nil {
		return nil, err
	}
	paths := s.cluster.paths
	config.Cgroup = paths.cgroup(config.Name)
	seed, err := node.Seed(config)
	if err != nil {
		return nil, err
	}
	var disks []guest.Disk
	if settings := s.cluster.Settings(); !config.Control {
		disks = guest.NewDisks(settings.Disks, settings.DiskSize)
	}
	return native.Create(paths.node(config.Name), native.Spec{
		Name: config.Name, Network: paths.network(), Address: config.Address, MAC: config.MAC,
		Programs: s.materials.programs.Files(), Services: seed.Plan.Services, Disks: disks,
		Cgroup: config.Cgroup, Files: seed.Files,
	})
}
