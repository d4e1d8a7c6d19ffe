package inventory

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// Own is the module of this repository. Its other modules have paths below it.
const Own = "berth.dev/berth"

// Module is a module that a program was built from.
type Module struct {
	Path, Version string
}

// Modules returns the modules of others that a program contains, Go's standard library among
// them as the module "std", in the order of their paths.
func Modules(program string) ([]Module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading what %s was built from: %w", filepath.Base(program), err)
	}
	modules := []Module{{Path: standard, Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Path != Own && !strings.HasPrefix(d.Path, Own+"/") {
			modules = append(modules, moduleOf(d))
		}
	}
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}

// standard is the name of Go's standard library in package URLs.
const standard = "std"

func moduleOf(d *debug.Module) Module {
	if d.Replace != nil {
		d = d.Replace
	}
	return Module{Path: d.Path, Version: d.Version}
}

func (m Module) String() string { return m.Path + "@" + m.Version }

// url is the package URL by which scanners know the module.
func (m Module) url() string { return "pkg:golang/" + m.Path + "@" + m.Version }

// Sources are the directories of this machine that have the modules' source.
type Sources struct {
	// ModuleCache is where the go command keeps modules.
	ModuleCache string
	// Go is the root of the Go toolchain.
	Go string
}

// dir returns the directory that has the source of a module.
func (s Sources) dir(m Module) (string, error) {
	if m.Path == standard {
		return s.Go, nil
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", fmt.Errorf("finding module %s: %w", m, err)
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return "", fmt.Errorf("finding module %s: %w", m, err)
	}
	return filepath.Join(s.ModuleCache, path+"@"+version), nil
}
