package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/build"
	"berth.dev/berth/lab/internal/catalog"
	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/progress"
)

// materials are the files that a cluster is made of and that all nodes share.
type materials struct {
	image guest.Image
	tools string // disk image with the programs of a node
	// images is the disk image with containerd's state.
	images string

	// Of native nodes: the programs as files, and archives with the images.
	programs node.Programs
	archives []string
}

// installPackages installs the Debian packages that are missing on the machine.
func installPackages(ctx context.Context, report progress.Reporter, settings Settings) error {
	if len(settings.NodeNames()) == 0 {
		return nil
	}
	packages := build.Runc.MissingPackages()
	if settings.guests() {
		packages = append(packages, guest.MissingPackages()...)
	}
	if settings.natives() {
		packages = append(packages, guest.Missing(network.FilterPackages)...)
	}
	packages = append(packages, catalog.MissingPackages(catalog.Busybox)...)
	return guest.InstallPackages(ctx, report, packages)
}

// gather builds or fetches everything side by side. Without nodes only the
// control plane is needed.
func (c *Cluster) gather(ctx context.Context) (materials, error) {
	var m materials
	var p node.Programs
	g, gathering := errgroup.WithContext(ctx)
	g.Go(func() error {
		found, err := findPrograms(gathering, c.lab.Store, c.state)
		p.Kubelet = filepath.Join(found.Kubernetes, "kubelet")
		p.KubeProxy = filepath.Join(found.Kubernetes, "kube-proxy")
		return err
	})
	if len(c.Nodes()) == 0 {
		return m, g.Wait()
	}
	guests := c.Settings().guests()
	if guests {
		getImage := guest.GetImage
		if c.Settings().ZFS {
			getImage = guest.GetZFSImage
		}
		g.Go(func() (err error) {
			m.image, err = getImage(gathering, c.lab.Store)
			return err
		})
	}
	g.Go(func() error { return getRuntime(gathering, c.lab.Store, &p) })
	archives := slices.Clone(c.Settings().Images)
	g.Go(func() error {
		images, err := catalog.Get(gathering, c.lab.Store, catalog.Pause)
		if err == nil {
			archives = append(archives, images[0].Path)
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return m, err
	}
	m.programs, m.archives = p, archives
	if !guests {
		return m, nil
	}
	g, gathering = errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		m.tools, err = node.Tools(gathering, c.lab.Store, p)
		return err
	})
	g.Go(func() (err error) {
		m.images, err = c.makeImages(gathering, p.Containerd, archives)
		return err
	})
	return m, g.Wait()
}

// getRuntime gets the programs that run a node's containers, one after the other: each
// build alone keeps all processors busy.
func getRuntime(ctx context.Context, store *artefact.Store, p *node.Programs) (err error) {
	if p.Containerd, err = build.Containerd.Get(ctx, store); err != nil {
		return err
	}
	if p.CNI, err = build.CNI.Get(ctx, store); err != nil {
		return err
	}
	runc, err := build.Runc.Get(ctx, store)
	p.Runc = filepath.Join(runc, "runc")
	return err
}

// makeImages makes the disk that the nodes' containerds start from.
func (c *Cluster) makeImages(ctx context.Context, containerd string, archives []string) (file string, err error) {
	err = c.step("images for the nodes", func(step progress.Step) error {
		path := c.paths.imagesLog()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		log, err := os.Create(path)
		if err != nil {
			return err
		}
		defer log.Close()
		step.Note("%d archives", len(archives))
		if err := node.MakeImages(ctx, c.paths.images(), containerd, archives, log); err != nil {
			return fmt.Errorf("%w: read the log %s", err, path)
		}
		return nil
	})
	return c.paths.images(), err
}
