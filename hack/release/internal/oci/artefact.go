package oci

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Artefact is anything but an image: a registry keeps it as it keeps images.
type Artefact struct {
	// ConfigType says what the artefact is.
	ConfigType types.MediaType
	Config     []byte
	Blobs      []Blob
}

// Blob is one file of an artefact.
type Blob struct {
	Type types.MediaType
	// Name of the file, for clients that unpack artefacts. It may be empty.
	Name string
	Data []byte
}

// title is the annotation in which clients look for a file's name.
const title = "org.opencontainers.image.title"

// Image returns the artefact in the form that registries take.
func (a Artefact) Image() (v1.Image, error) {
	config, err := descriptor(static.NewLayer(a.Config, a.ConfigType))
	if err != nil {
		return nil, err
	}
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config, Layers: []v1.Descriptor{}}
	c := &content{config: a.Config, layers: map[v1.Hash]v1.Layer{}}
	for _, b := range a.Blobs {
		layer := static.NewLayer(b.Data, b.Type)
		d, err := descriptor(layer)
		if err != nil {
			return nil, err
		}
		if b.Name != "" {
			d.Annotations = map[string]string{title: b.Name}
		}
		m.Layers = append(m.Layers, d)
		c.layers[d.Digest] = layer
	}
	if c.manifest, err = json.Marshal(m); err != nil {
		return nil, err
	}
	return partial.CompressedToImage(c)
}

func descriptor(layer v1.Layer) (v1.Descriptor, error) {
	d, err := partial.Descriptor(layer)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("describing a part of an artefact: %w", err)
	}
	return *d, nil
}

// content is an artefact as the library asks for it.
type content struct {
	config, manifest []byte
	layers           map[v1.Hash]v1.Layer
}

var _ partial.CompressedImageCore = (*content)(nil)

func (c *content) RawConfigFile() ([]byte, error)    { return bytes.Clone(c.config), nil }
func (c *content) RawManifest() ([]byte, error)      { return bytes.Clone(c.manifest), nil }
func (*content) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (c *content) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	layer, ok := c.layers[h]
	if !ok {
		return nil, fmt.Errorf("the artefact has no part %s", h)
	}
	return layer, nil
}
