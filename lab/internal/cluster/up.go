package cluster

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/network"
)

// Up brings the named cluster up. Parts that run already stay as they are; Up starts the
// missing ones. The settings count only for a new cluster.
func (l Lab) Up(ctx context.Context, name string, settings Settings) (*Cluster, error) {
	if err := errors.Join(needRoot(), settings.validate()); err != nil {
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
	if errors.Is(err, ErrNotUp) || err == nil && !(&Cluster{paths: p, state: st}).Begun() {
		if st, err = newState(p.state(), name, settings); err == nil {
			err = l.Store.Hold(p.state())
		}
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

// up first gets everything that takes long to make, then starts control plane
// and nodes side by side: a kubelet asks for its API server until there is one.
func (c *Cluster) up(ctx context.Context) error {
	if err := installPackages(ctx, c.lab.Report, c.Settings()); err != nil {
		return err
	}
	m, err := c.gather(ctx)
	if err != nil {
		return err
	}
	net, err := network.Create(ctx, c.paths.network())
	if err != nil {
		return err
	}
	config, err := c.ControlPlane().config(net)
	if err != nil {
		return err
	}
	s := starter{cluster: c, materials: m, net: net, config: config}
	g, started := errgroup.WithContext(ctx)
	g.Go(func() error { return c.ControlPlane().start(started, config) })
	for i, n := range c.Nodes() {
		start := s.startGuest
		if n.native() {
			start = s.startNative
		}
		g.Go(func() error { return start(started, n, i+1) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.awaitNodes(ctx)
}
