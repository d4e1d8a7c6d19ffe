package cluster

import (
	"context"

	"berth.dev/berth/lab/internal/build"
	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/progress"
)

// Backup saves the state of the API server, while the cluster runs.
func (c *Cluster) Backup(ctx context.Context, file string) error {
	if err := needRoot(); err != nil {
		return err
	}
	config, err := c.planWithEtcdTools(ctx)
	if err != nil {
		return err
	}
	return c.step("API server: backup", func(progress.Step) error {
		return controlplane.Backup(ctx, config, c.state, file)
	})
}

// Restore sets the API server back to a state that [Cluster.Backup] saved. Nodes, their
// disks and their processes stay as they are.
func (c *Cluster) Restore(ctx context.Context, r controlplane.Restoration) error {
	if err := needRoot(); err != nil {
		return err
	}
	return c.change(func() error {
		config, err := c.planWithEtcdTools(ctx)
		if err != nil {
			return err
		}
		return c.step("API server: restore", func(step progress.Step) error {
			return controlplane.Restore(ctx, config, c.state, r, step)
		})
	})
}

func (c *Cluster) planWithEtcdTools(ctx context.Context) (controlplane.Config, error) {
	tools, err := build.Etcd.Get(ctx, c.lab.Store)
	if err != nil {
		return controlplane.Config{}, err
	}
	net, err := c.network(ctx)
	if err != nil {
		return controlplane.Config{}, err
	}
	config, err := c.plan(net)
	config.EtcdTools = tools
	return config, err
}
