package oci

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"berth.dev/berth/hack/release/internal/pack"
)

// Image is a container image of Linux for one architecture.
type Image struct {
	// Architecture in Go's words.
	Architecture string
	// Base is the path of a tar with the root filesystem below the layers, or empty.
	Base string
	// Layers of files, lowest first.
	Layers [][]pack.File
	// Entrypoint is the program that the image runs.
	Entrypoint string
	// User is a number, or two with a colon; root if it is empty.
	User   string
	Labels map[string]string
}

// searchPath is where programs of the image look for others.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (i Image) build() (v1.Image, error) {
	layers, err := i.layers()
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{
			Architecture: i.Architecture, OS: "linux", RootFS: v1.RootFS{Type: "layers"},
			Config: v1.Config{Entrypoint: []string{i.Entrypoint}, User: i.User, Env: []string{searchPath}, Labels: i.Labels},
		})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layers...)
}

func (i Image) layers() ([]v1.Layer, error) {
	var all []v1.Layer
	if i.Base != "" {
		base, err := tarball.LayerFromFile(i.Base, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		all = append(all, base)
	}
	for _, files := range i.Layers {
		data, err := pack.Tar(files)
		if err != nil {
			return nil, err
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		all = append(all, layer)
	}
	return all, nil
}

// Index returns one image for several architectures, in the order of their names.
func Index(images map[string]Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range slices.Sorted(maps.Keys(images)) {
		i := images[architecture]
		i.Architecture = architecture
		image, err := i.build()
		if err != nil {
			return nil, fmt.Errorf("making the image for %s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index, nil
}
