package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Identity is the name and digest by which a node knows an image.
type Identity struct {
	Ref    string
	Digest string // of the manifest
}

// Identify returns the images in an OCI archive without reading its layers.
func Identify(path string) ([]Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening image archive: %w", err)
	}
	defer f.Close()
	tr := tar.NewReader(f)
	for {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s is not an OCI image archive: it has no index.json", path)
		}
		if err != nil {
			return nil, fmt.Errorf("reading image archive %s: %w", path, err)
		}
		if header.Name == "index.json" {
			ids, err := identities(tr)
			if err != nil {
				return nil, fmt.Errorf("reading image archive %s: %w", path, err)
			}
			return ids, nil
		}
	}
}

func identities(r io.Reader) ([]Identity, error) {
	var idx index
	if err := json.NewDecoder(r).Decode(&idx); err != nil {
		return nil, fmt.Errorf("decoding index.json: %w", err)
	}
	var ids []Identity
	for _, m := range idx.Manifests {
		ref := m.Annotations["io.containerd.image.name"]
		if ref == "" {
			return nil, errors.New("an image in it has no name (annotation io.containerd.image.name)")
		}
		ids = append(ids, Identity{Ref: ref, Digest: m.Digest})
	}
	return ids, nil
}
