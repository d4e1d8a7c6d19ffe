package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/release/internal/oci"
	"berth.dev/berth/hack/release/internal/pack"
)

// Image is an image of the release, as the chart's values name it.
type Image struct {
	// Key of the image's values, such as "controller.image".
	Key string
	// Registry and the path in it; may be empty, and the administrator who installs the chart names it.
	Registry string
	// Digest of the image for all architectures.
	Digest string
}

// Chart is a chart with the versions and images of a release.
type Chart struct {
	name     string
	metadata []byte // JSON
	archive  []byte
}

// Read reads the chart in a directory and gives it a version and images.
func Read(dir, version string, images []Image) (Chart, error) {
	files, err := read(dir)
	if err != nil {
		return Chart{}, fmt.Errorf("reading the chart: %w", err)
	}
	values := map[string]string{}
	for _, i := range images {
		values[i.Key+".registry"], values[i.Key+".digest"] = i.Registry, i.Digest
	}
	var c Chart
	for i, f := range files {
		var wanted map[string]string
		switch f.Name {
		case "Chart.yaml":
			wanted = map[string]string{"version": version, "appVersion": version}
		case "values.yaml":
			wanted = values
		default:
			continue
		}
		if files[i].Data, err = fill(f.Data, wanted); err != nil {
			return Chart{}, fmt.Errorf("giving the chart its version and images in %s: %w", f.Name, err)
		}
		if f.Name == "Chart.yaml" {
			err = c.describe(files[i].Data)
		}
		if err != nil {
			return Chart{}, fmt.Errorf("reading %s: %w", f.Name, err)
		}
	}
	if c.name == "" {
		return Chart{}, fmt.Errorf("%s has no Chart.yaml with a name", dir)
	}
	c.archive, err = pack.TarGzip(pack.Below(c.name, files))
	return c, err
}

func (c *Chart) describe(text []byte) (err error) {
	var metadata struct {
		Name string `json:"name"`
	}
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		return err
	}
	c.name = metadata.Name
	c.metadata, err = yaml.YAMLToJSON(text)
	return err
}

// read returns the files of a chart, without those that editors leave behind.
func read(dir string) ([]pack.File, error) {
	var files []pack.File
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files = append(files, pack.File{Name: name, Mode: 0o644, Data: data})
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New("no files in " + filepath.Clean(dir))
	}
	return files, err
}

// Archive returns the chart as Helm packs charts.
func (c Chart) Archive() []byte { return c.archive }

// Artefact returns the chart as Helm finds it in registries.
func (c Chart) Artefact() oci.Artefact {
	return oci.Artefact{
		ConfigType: "application/vnd.cncf.helm.config.v1+json",
		Config:     c.metadata,
		Blobs:      []oci.Blob{{Type: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Data: c.archive}},
	}
}
