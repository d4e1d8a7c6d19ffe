package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/semver"

	"berth.dev/berth/hack/release/internal/chart"
	"berth.dev/berth/hack/release/internal/inventory"
	"berth.dev/berth/hack/release/internal/oci"
	"berth.dev/berth/hack/release/internal/pack"
)

// Config says what a release is made of.
type Config struct {
	// Version is a semantic version without the letter v.
	Version string
	// Registry is where the chart finds Berth's images, such as registry.example.org/team.
	// If it is empty, the administrator who installs the chart names it.
	Registry string
	// Downloads is the address of the folder from which krew downloads the plugin.
	Downloads string
	// Programs is the directory with the programs: NAME-OS-ARCHITECTURE, for Windows with .exe.
	Programs string
	// Userland has the path of the tar with the agent's tools, by architecture.
	Userland map[string]string
	// Charts is the directory with the charts' own directories.
	Charts string
	// Licence is the file with Berth's own licence.
	Licence string
	Sources inventory.Sources
}

// Store is the directory of a release that [oci.OpenStore] opens.
const Store = "oci"

// Names in a registry. Images are below the first.
const (
	images     = "berth/"
	charts     = "charts/"
	otherFiles = "berth/files"
)

// folder is a release that is being written.
type folder struct {
	Config
	dir     string
	store   oci.Store
	licence pack.File
	// files that registries get beside images and chart.
	files []pack.File
}

// Write writes a release into a folder, which it replaces as a whole.
func Write(dir string, c Config) (err error) {
	if !semver.IsValid("v" + c.Version) {
		return fmt.Errorf("%q is not a semantic version", c.Version)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), ".release-*")
	if err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	if err := write(part, c); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Chmod(part, 0o755), os.Rename(part, dir)); err != nil {
		return fmt.Errorf("replacing the release: %w", err)
	}
	return nil
}

func write(dir string, c Config) error {
	text, err := os.ReadFile(c.Licence)
	if err != nil {
		return fmt.Errorf("reading Berth's licence: %w", err)
	}
	store, err := oci.NewStore(filepath.Join(dir, Store))
	if err != nil {
		return err
	}
	f := &folder{Config: c, dir: dir, store: store, licence: pack.File{Name: "LICENSE", Mode: 0o644, Data: text}}
	named, err := f.images()
	if err != nil {
		return err
	}
	packed, err := f.chart("berth", named)
	if err != nil {
		return err
	}
	classes, err := f.chart("berth-classes", nil)
	if err != nil {
		return err
	}
	if err := f.plugins(); err != nil {
		return err
	}
	if err := store.AddArtefact(otherFiles, c.Version, f.artefact()); err != nil {
		return err
	}
	for _, file := range append(f.files, packed, classes) {
		if err := f.put(file); err != nil {
			return err
		}
	}
	return sum(dir)
}

// chart packs a chart with the names of its images, and adds it to the store.
func (f *folder) chart(name string, named []chart.Image) (pack.File, error) {
	c, err := chart.Read(filepath.Join(f.Charts, name), f.Version, named)
	if err != nil {
		return pack.File{}, err
	}
	if err := f.store.AddArtefact(charts+name, f.Version, c.Artefact()); err != nil {
		return pack.File{}, err
	}
	bill := inventory.Artefact{Name: "chart-" + name, Version: f.Version}
	for _, i := range named {
		bill.Images = append(bill.Images, i.Key+"@"+i.Digest)
	}
	return pack.File{Name: name + "-" + f.Version + ".tgz", Mode: 0o644, Data: c.Archive()}, f.describe(bill)
}

// describe adds an artefact's bill of materials.
func (f *folder) describe(a inventory.Artefact) error {
	text, err := inventory.BillOfMaterials(a)
	f.files = append(f.files, pack.File{Name: "sbom/" + a.Name + ".cdx.json", Mode: 0o644, Data: text})
	return err
}

// artefact returns the files that no other artefact has.
func (f *folder) artefact() oci.Artefact {
	a := oci.Artefact{ConfigType: "application/vnd.berth.release.v1+json", Config: []byte("{}")}
	for _, file := range f.files {
		a.Blobs = append(a.Blobs, oci.Blob{Type: "application/octet-stream", Name: file.Name, Data: file.Data})
	}
	return a
}

func (f *folder) put(file pack.File) error {
	path := filepath.Join(f.dir, filepath.FromSlash(file.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", file.Name, err)
	}
	if err := os.WriteFile(path, file.Data, file.Mode); err != nil {
		return fmt.Errorf("writing %s: %w", file.Name, err)
	}
	return nil
}
