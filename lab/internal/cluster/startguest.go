package cluster

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/progress"
)

// processors of a node. With only one, a busy kubelet would starve udev.
const processors = 2

// startGuest makes a node's machine if there is none and powers it on. A
// machine that is paused stays so.
func (s starter) startGuest(ctx context.Context, n Node, index int) error {
	dir := s.cluster.paths.node(n.name)
	tap, err := s.net.Tap(ctx, n.name)
	if err != nil {
		return err
	}
	machine, err := guest.Open(dir)
	if err == nil && machine.Power() != guest.Off {
		return nil
	}
	return s.cluster.step(n.name+": booting", func(progress.Step) error {
		if errors.Is(err, guest.ErrNotExist) {
			seed, seedErr := s.seed(ctx, n, index)
			if seedErr != nil {
				return seedErr
			}
			settings, m := s.cluster.Settings(), s.materials
			machine, err = guest.Create(ctx, dir, guest.Spec{
				Name: n.name, Image: m.image, CPUs: processors, Memory: settings.Memory, Tools: m.tools, Images: m.images,
				Disks: guest.NewDisks(settings.Disks, settings.DiskSize), NetNS: s.net.Path(), Tap: tap, Seed: seed, Resets: true,
			})
		}
		if err != nil {
			return err
		}
		if err := machine.PowerOn(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("not booted after %v", bootLimit))
		defer cancel()
		return machine.WaitReady(ctx)
	})
}

func (s starter) seed(ctx context.Context, n Node, index int) (guest.Seed, error) {
	config, err := s.nodeConfig(ctx, n, index)
	if err != nil {
		return guest.Seed{}, err
	}
	return node.Seed(config)
}
