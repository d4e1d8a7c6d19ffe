package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// descriptor points to a blob of the archive, as the OCI image format defines it.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const (
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
)

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	Architecture string        `json:"architecture"`
	OS           string        `json:"os"`
	Config       runtimeConfig `json:"config"`
	RootFS       rootFS        `json:"rootfs"`
}

type runtimeConfig struct {
	User       string            `json:"User,omitempty"`
	Env        []string          `json:"Env,omitempty"`
	Entrypoint []string          `json:"Entrypoint,omitempty"`
	Cmd        []string          `json:"Cmd,omitempty"`
	WorkingDir string            `json:"WorkingDir,omitempty"`
	Labels     map[string]string `json:"Labels,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Write writes the image as an OCI archive to the file at path, which appears
// complete or not at all.
func Write(path string, s Spec) error {
	if err := s.Validate(); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part*")
	if err != nil {
		return fmt.Errorf("creating image archive: %w", err)
	}
	defer os.Remove(part.Name())
	defer part.Close()
	if err := writeArchive(part, s); err != nil {
		return fmt.Errorf("writing image %s: %w", s.Ref, err)
	}
	if err := part.Chmod(0o644); err != nil {
		return fmt.Errorf("writing image %s: %w", s.Ref, err)
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return fmt.Errorf("writing image %s: %w", s.Ref, err)
	}
	return nil
}

func writeArchive(w io.Writer, s Spec) error {
	a := &archive{tw: tar.NewWriter(w), have: map[string]bool{}}
	if err := a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	layers, err := a.layers(s)
	if err != nil {
		return err
	}
	c := config{Architecture: runtime.GOARCH, OS: "linux", RootFS: rootFS{Type: "layers"}, Config: runtimeConfig{
		User: s.User, Env: s.Env, Entrypoint: s.Entrypoint, Cmd: s.Cmd, WorkingDir: s.WorkDir, Labels: s.Labels,
	}}
	if len(s.Env) == 0 {
		c.Config.Env = []string{defaultPath}
	}
	for _, l := range layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, l.Digest) // equal, as nothing is compressed
	}
	configBlob, err := a.json(mediaConfig, c)
	if err != nil {
		return err
	}
	m, err := a.json(mediaManifest, manifest{SchemaVersion: 2, MediaType: mediaManifest, Config: configBlob, Layers: layers})
	if err != nil {
		return err
	}
	m.Annotations = map[string]string{"io.containerd.image.name": s.Ref, "org.opencontainers.image.ref.name": s.Ref}
	data, err := json.Marshal(index{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{m}})
	if err != nil {
		return err
	}
	if err := a.file("index.json", data); err != nil {
		return err
	}
	return a.tw.Close()
}

// archive is an OCI layout in a tar stream.
type archive struct {
	tw   *tar.Writer
	have map[string]bool // digests that are in it already
}

func (a *archive) file(name string, data []byte) error {
	if err := a.tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := a.tw.Write(data)
	return err
}

func (a *archive) json(mediaType string, value any) (descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.Sum256(data)
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
	return d, a.file(d.blob(), data)
}

func (d descriptor) blob() string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }

func (a *archive) layers(s Spec) ([]descriptor, error) {
	var all []descriptor
	for _, path := range s.Layers {
		d, err := a.layer(path)
		if err != nil {
			return nil, fmt.Errorf("adding layer %s: %w", path, err)
		}
		all = append(all, d)
	}
	if len(s.Files)+len(s.Links) == 0 {
		return all, nil
	}
	top, err := os.CreateTemp("", "berth-lab-layer-*")
	if err != nil {
		return nil, fmt.Errorf("creating layer: %w", err)
	}
	defer os.Remove(top.Name())
	defer top.Close()
	if err := s.writeTop(top); err != nil {
		return nil, err
	}
	d, err := a.layer(top.Name())
	return append(all, d), err
}

// layer copies a tar into the archive. It reads the tar twice, because the digest
// comes before the content.
func (a *archive) layer(path string) (descriptor, error) {
	f, err := os.Open(path)
	if err != nil {
		return descriptor{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return descriptor{}, err
	}
	d := descriptor{MediaType: mediaLayer, Digest: "sha256:" + hex.EncodeToString(h.Sum(nil)), Size: size}
	if a.have[d.Digest] {
		return d, nil
	}
	a.have[d.Digest] = true
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return descriptor{}, err
	}
	if err := a.tw.WriteHeader(&tar.Header{Name: d.blob(), Mode: 0o644, Size: size}); err != nil {
		return descriptor{}, err
	}
	_, err = io.Copy(a.tw, f)
	return d, err
}
