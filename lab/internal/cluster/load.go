package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/image"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/progress"
)

// Load puts the images of OCI archives into containerd on the given nodes, or
// on all if none is given. A node that has an image with the same content is
// left as it is.
func (c *Cluster) Load(ctx context.Context, nodes, archives []string) error {
	if len(nodes) == 0 {
		nodes = c.Settings().NodeNames()
	}
	for _, archive := range archives {
		if _, err := image.Identify(archive); err != nil {
			return err // before anything is loaded
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range nodes {
		g.Go(func() error { return c.Node(name).load(ctx, archives) })
	}
	return g.Wait()
}

func (n Node) load(ctx context.Context, archives []string) error {
	machine, err := n.Machine()
	if err != nil {
		return err
	}
	return n.cluster.step(n.name+": load images", func(step progress.Step) error { return loadMissing(ctx, machine, archives, step) })
}

func loadMissing(ctx context.Context, machine node.Guest, archives []string, step progress.Step) error {
	missing, err := node.Missing(ctx, machine, archives)
	if err != nil {
		return err
	}
	for i, archive := range missing {
		step.Note("image %d of %d: %s", i+1, len(missing), filepath.Base(archive))
		if err := node.Load(ctx, machine, archive); err != nil {
			return fmt.Errorf("loading %s: %w", archive, err)
		}
	}
	return nil
}
