package release

import (
	"crypto/sha256"
	"fmt"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/release/internal/inventory"
	"berth.dev/berth/hack/release/internal/pack"
)

// plugin is the program that kubectl runs as `kubectl berth`.
const plugin = "kubectl-berth"

// systems that the plugin is made for, on each architecture.
var systems = []string{"linux", "darwin", "windows"}

// manifest describes the plugin to krew, in krew's own format.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       manifestSpec      `json:"spec"`
}

type manifestSpec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector map[string]map[string]string `json:"selector"`
	URI      string                       `json:"uri"`
	SHA256   string                       `json:"sha256"`
	Bin      string                       `json:"bin"`
}

// plugins adds the plugin for each platform, and its description for krew.
func (f *folder) plugins() error {
	m := manifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "berth"},
		Spec: manifestSpec{
			Version: "v" + f.Version, Homepage: "https://" + inventory.Own,
			ShortDescription: "Explain and tend volumes of Berth",
			Description:      "Says why a claim waits, lists data that has lost its objects, and adopts or forgets it.\n",
		},
	}
	for _, system := range systems {
		for _, architecture := range architectures {
			p, err := f.plugin(system, architecture)
			if err != nil {
				return fmt.Errorf("packing the plugin for %s/%s: %w", system, architecture, err)
			}
			m.Spec.Platforms = append(m.Spec.Platforms, p)
		}
	}
	text, err := yaml.Marshal(m)
	f.files = append(f.files, pack.File{Name: "berth.yaml", Mode: 0o644, Data: text})
	return err
}

func (f *folder) plugin(system, architecture string) (platform, error) {
	p, err := f.program(plugin, system, architecture)
	if err != nil {
		return platform{}, err
	}
	bin := plugin + suffix(system)
	files := append(pack.Below("licences", f.licences(p)), f.licence, pack.File{Name: bin, Mode: 0o755, Data: p.data})
	data, err := pack.TarGzip(files)
	if err != nil {
		return platform{}, err
	}
	name := plugin + "_" + f.Version + "_" + system + "_" + architecture
	archive := pack.File{Name: name + ".tar.gz", Mode: 0o644, Data: data}
	f.files = append(f.files, archive)
	return platform{
		Selector: map[string]map[string]string{"matchLabels": {"os": system, "arch": architecture}},
		URI:      f.Downloads + archive.Name,
		SHA256:   fmt.Sprintf("%x", sha256.Sum256(data)),
		Bin:      bin,
	}, f.describe(inventory.Artefact{Name: plugin + "-" + system + "-" + architecture, Version: f.Version, Modules: p.modules})
}
