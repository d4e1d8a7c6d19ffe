package catalog

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/build"
	"berth.dev/berth/lab/internal/image"
)

// Names of the images.
const (
	Pause              = "localhost/pause:1"
	Busybox            = "localhost/busybox:1"
	Provisioner        = "localhost/csi-provisioner:v6.3.0"
	Resizer            = "localhost/csi-resizer:v2.3.0"
	Attacher           = "localhost/csi-attacher:v4.13.0"
	Snapshotter        = "localhost/csi-snapshotter:v8.7.0"
	SnapshotController = "localhost/snapshot-controller:v8.7.0"
)

// Archive is an image as a file.
type Archive struct {
	Ref  string
	Path string // OCI archive
}

// source makes the specification of an image, after building its contents.
// Paths in the specification are content addresses or come with a key.
type source struct {
	ref  string
	name string // of the artefact
	spec func(context.Context, *artefact.Store) (s image.Spec, key string, err error)
}

var sources = []source{
	{Pause, "image-pause", program(build.Pause, "pause", "65535:65535")},
	{Busybox, "image-busybox", busybox},
	{Provisioner, "image-csi-provisioner", program(build.Provisioner, "csi-provisioner", "65532:65532")},
	{Resizer, "image-csi-resizer", program(build.Sidecars, "csi-resizer", "65532:65532")},
	{Attacher, "image-csi-attacher", program(build.Attacher, "csi-attacher", "65532:65532")},
	{Snapshotter, "image-csi-snapshotter", program(build.Snapshotter, "csi-snapshotter", "65532:65532")},
	{SnapshotController, "image-snapshot-controller", program(build.Snapshotter, "snapshot-controller", "65532:65532")},
}

// Get returns the archives of the named images, built if need be; of all
// images if no name is given.
func Get(ctx context.Context, store *artefact.Store, refs ...string) ([]Archive, error) {
	wanted := sources
	if len(refs) > 0 {
		wanted = nil
		for _, ref := range refs {
			s, err := find(ref)
			if err != nil {
				return nil, err
			}
			wanted = append(wanted, s)
		}
	}
	archives := make([]Archive, len(wanted))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2) // each is a build that keeps all processors busy
	for i, s := range wanted {
		g.Go(func() (err error) {
			archives[i], err = s.get(ctx, store)
			return err
		})
	}
	return archives, g.Wait()
}

func find(ref string) (source, error) {
	for _, s := range sources {
		if s.ref == ref {
			return s, nil
		}
	}
	return source{}, fmt.Errorf("the lab has no image %s", ref)
}

func (s source) get(ctx context.Context, store *artefact.Store) (Archive, error) {
	spec, key, err := s.spec(ctx, store)
	if err != nil {
		return Archive{}, err
	}
	spec.Ref = s.ref
	dir, err := store.Get(ctx, artefact.Recipe{
		Name: s.name,
		Key:  []string{key, fmt.Sprintf("%+v", spec)},
		Make: func(_ context.Context, dir string, log io.Writer) error {
			fmt.Fprintf(log, "writing %+v\n", spec)
			return image.Write(filepath.Join(dir, archiveName), spec)
		},
	})
	return Archive{Ref: s.ref, Path: filepath.Join(dir, archiveName)}, err
}

const archiveName = "image.tar"

// program is an image with one program of a module as its entrypoint.
func program(m build.Module, name, user string) func(context.Context, *artefact.Store) (image.Spec, string, error) {
	return func(ctx context.Context, store *artefact.Store) (image.Spec, string, error) {
		dir, err := m.Get(ctx, store)
		return image.Spec{
			Files:      []image.File{{Path: "/" + name, Source: filepath.Join(dir, name)}},
			Entrypoint: []string{"/" + name},
			User:       user,
		}, "", err
	}
}
