package cluster

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/build"
	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/progress"
)

// Up brings the named cluster up. What runs already stays as it is; what is
// missing is started. The settings count only for a cluster that is new.
func (l Lab) Up(ctx context.Context, name string, settings Settings) (*Cluster, error) {
	if err := needRoot(); err != nil {
		return nil, err
	}
	p, err := newPaths(l.Root, name)
	if err != nil {
		return nil, err
	}
	lock, err := takeLock(p.lock(), name)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	st, err := loadState(p.state(), name)
	if errors.Is(err, ErrNotUp) {
		st, err = newState(p.state(), name, settings)
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{lab: l, paths: p, state: st}
	if err := c.up(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted (`lab up` goes on from here, `lab down` removes what there is): %w", err)
		}
		return nil, err
	}
	return c, nil
}

func (c *Cluster) up(ctx context.Context) error {
	net, err := network.Create(ctx, c.paths.name)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.startControlPlane(ctx, net) })
	return g.Wait()
}

func (c *Cluster) startControlPlane(ctx context.Context, net *network.Network) error {
	programs, err := build.Kubernetes.Get(ctx, c.lab.Store)
	if err != nil {
		return err
	}
	if err := c.state.update(func(s *contents) { s.Programs = programs }); err != nil {
		return err
	}
	config, err := c.plan(net)
	if err != nil {
		return err
	}
	err = c.step("control plane", func(step progress.Step) error {
		return controlplane.Start(ctx, config, c.state, step)
	})
	if err != nil {
		return err
	}
	return c.startForwarder(ctx, config)
}
