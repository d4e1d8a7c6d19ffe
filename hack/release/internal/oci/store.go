package oci

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Store is a directory with images and artefacts, in the layout that the OCI defines.
type Store struct{ path layout.Path }

// refName is the annotation that names an image of a layout. Names are complete but for
// the registry.
const refName = "org.opencontainers.image.ref.name"

// NewStore makes an empty store in a directory that need not exist.
func NewStore(dir string) (Store, error) {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return Store{}, fmt.Errorf("making a store of images: %w", err)
	}
	return Store{path}, nil
}

// OpenStore opens the store in a directory.
func OpenStore(dir string) (Store, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return Store{}, fmt.Errorf("opening a store of images: %w", err)
	}
	return Store{path}, nil
}

// Add adds an image for several architectures under a repository and a tag. It returns its digest.
func (s Store) Add(repository, tag string, index v1.ImageIndex) (string, error) {
	if err := s.path.AppendIndex(index, named(repository, tag)); err != nil {
		return "", fmt.Errorf("storing %s:%s: %w", repository, tag, err)
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// AddArtefact adds an artefact under a repository and a tag.
func (s Store) AddArtefact(repository, tag string, a Artefact) error {
	image, err := a.Image()
	if err == nil {
		err = s.path.AppendImage(image, named(repository, tag))
	}
	if err != nil {
		return fmt.Errorf("storing %s:%s: %w", repository, tag, err)
	}
	return nil
}

func named(repository, tag string) layout.Option {
	return layout.WithAnnotations(map[string]string{refName: repository + ":" + tag})
}

// Push brings everything in the store to a registry, such as registry.example.org/team. It
// tells each complete name once it is there. Credentials are those of docker's
// configuration.
func (s Store) Push(ctx context.Context, registry string, tell func(pushed string)) error {
	root, err := s.path.ImageIndex()
	if err != nil {
		return fmt.Errorf("reading a store of images: %w", err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading a store of images: %w", err)
	}
	for _, d := range manifest.Manifests {
		complete := registry + "/" + d.Annotations[refName]
		ref, err := name.NewTag(complete, name.StrictValidation)
		if err != nil {
			return fmt.Errorf("naming %s: %w", complete, err)
		}
		content, err := open(root, d)
		if err != nil {
			return fmt.Errorf("reading %s: %w", complete, err)
		}
		if err := remote.Push(ref, content, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("pushing %s: %w", complete, err)
		}
		tell(complete + "@" + d.Digest.String())
	}
	return nil
}

func open(root v1.ImageIndex, d v1.Descriptor) (remote.Taggable, error) {
	if d.MediaType == types.OCIImageIndex {
		return root.ImageIndex(d.Digest)
	}
	return root.Image(d.Digest)
}
