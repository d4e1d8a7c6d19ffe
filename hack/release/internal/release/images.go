package release

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"berth.dev/berth/hack/release/internal/chart"
	"berth.dev/berth/hack/release/internal/inventory"
	"berth.dev/berth/hack/release/internal/oci"
	"berth.dev/berth/hack/release/internal/pack"
)

// image is one of Berth's images: a program, and perhaps the tools it runs.
type image struct {
	name, description string
	// build is the program's name before its platform.
	build string
	// entrypoint is the program's name in the image.
	entrypoint string
	// value is the key of the image among the chart's values.
	value string
	tools bool
}

// Architectures that images are made for.
var architectures = []string{"amd64", "arm64"}

var all = []image{
	{
		name: "agent", build: "berth", entrypoint: "berth", value: "agent.image", tools: true,
		description: "Berth's agent, with the tools of LVM, ZFS, btrfs and the filesystems",
	},
	{name: "controller", build: "berth", entrypoint: "berth", value: "controller.image", description: "Berth's controller"},
	schedulerFor("1.36"),
	schedulerFor("1.37"),
}

// schedulerFor returns the image of the scheduler for a minor of Kubernetes: a scheduler must not
// be newer than its API server.
func schedulerFor(minor string) image {
	return image{
		name: "scheduler-" + minor, build: "berth-scheduler-" + minor, entrypoint: "berth-scheduler",
		value: "scheduler.images.v" + strings.ReplaceAll(minor, ".", "-"), description: "kube-scheduler " + minor + " with Berth's plugins",
	}
}

// unprivileged is the user of images that need no rights on a node.
const unprivileged = "65532:65532"

// images adds Berth's images to the store, and returns how the chart names them.
func (f *folder) images() ([]chart.Image, error) {
	var named []chart.Image
	for _, i := range all {
		parts := map[string]oci.Image{}
		for _, architecture := range architectures {
			part, err := f.image(i, architecture)
			if err != nil {
				return nil, fmt.Errorf("making the image of the %s for %s: %w", i.name, architecture, err)
			}
			parts[architecture] = part
		}
		index, err := oci.Index(parts)
		if err != nil {
			return nil, fmt.Errorf("making the image of the %s: %w", i.name, err)
		}
		digest, err := f.store.Add(images+i.name, f.Version, index)
		if err != nil {
			return nil, err
		}
		named = append(named, chart.Image{Key: i.value, Registry: f.Registry, Digest: digest})
	}
	return named, nil
}

func (f *folder) image(i image, architecture string) (oci.Image, error) {
	made := oci.Image{User: unprivileged, Entrypoint: "/" + i.entrypoint, Labels: map[string]string{
		"org.opencontainers.image.title":       "berth-" + i.name,
		"org.opencontainers.image.description": i.description,
		"org.opencontainers.image.version":     f.Version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}}
	bill := inventory.Artefact{Name: i.name + "-linux-" + architecture, Version: f.Version, Container: true}
	if i.tools {
		var err error
		made.User, made.Base = "", f.Userland[architecture]
		if bill.Packages, err = inventory.Packages(made.Base); err != nil {
			return oci.Image{}, err
		}
	}
	program, err := f.program(i.build, "linux", architecture)
	if err != nil {
		return oci.Image{}, err
	}
	bill.Modules = program.modules
	// Licences change less often than the program: in a layer of their own they are pulled once.
	made.Layers = [][]pack.File{
		pack.Below("usr/share/licenses", f.licences(program)),
		{{Name: i.entrypoint, Mode: 0o755, Data: program.data}},
	}
	return made, f.describe(bill)
}

// program is a program for one platform.
type program struct {
	data    []byte
	modules []inventory.Licensed
}

func (f *folder) program(name, system, architecture string) (program, error) {
	path := filepath.Join(f.Programs, name+"-"+system+"-"+architecture+suffix(system))
	data, err := os.ReadFile(path)
	if err != nil {
		return program{}, fmt.Errorf("reading a program: %w", err)
	}
	modules, err := inventory.Modules(path)
	if err != nil {
		return program{}, err
	}
	licensed, err := f.Sources.Licences(modules)
	return program{data, licensed}, err
}

// licences returns Berth's licence and those of a program's modules.
func (f *folder) licences(p program) []pack.File {
	return append(pack.Below("modules", inventory.Texts(p.modules)), f.licence)
}

// suffix of programs of an operating system.
func suffix(system string) string {
	if system == "windows" {
		return ".exe"
	}
	return ""
}
