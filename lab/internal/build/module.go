package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/process"
)

// Module is one nested Go module below lab/build and how its programs are built.
type Module struct {
	Name     string   // directory below lab/build
	ModFile  string   // file in that directory which pins other versions than go.mod; empty for go.mod
	Packages []string // main packages
	Links    []string // further names of the first program, a multi-call binary
	Tags     []string
	LDFlags  []string
	CGO      bool     // needs a C compiler
	Debian   []string // Debian packages with the C libraries it links
}

// Programs lists the names under which the module's programs are found in its
// artefact.
func (m Module) Programs() []string {
	var names []string
	for _, p := range m.Packages {
		if p == "." {
			p = m.Name
		}
		names = append(names, programName(p))
	}
	return append(names, m.Links...)
}

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// programName returns the name that Go gives to the program of a package.
func programName(pkg string) string { return path.Base(majorVersion.ReplaceAllString(pkg, "")) }

// Recipe returns the recipe whose artefact is a directory with the module's
// programs. Its key holds the module's files, the flags and the Go version.
func (m Module) Recipe(ctx context.Context) (artefact.Recipe, error) {
	dir, err := sourceDir(m.Name)
	if err != nil {
		return artefact.Recipe{}, err
	}
	version, err := process.Output(ctx, process.Command{Path: "go", Args: []string{"env", "GOVERSION"}, Dir: dir, Env: m.env()})
	if _, missing := errors.AsType[*process.MissingError](err); missing {
		return artefact.Recipe{}, fmt.Errorf("building %s: %w: take Go 1.26 or newer from https://go.dev/dl", m.Name, err)
	}
	if err != nil {
		return artefact.Recipe{}, fmt.Errorf("asking for the version of Go: %w", err)
	}
	files, err := m.contents(dir)
	if err != nil {
		return artefact.Recipe{}, fmt.Errorf("reading module %s: %w", m.Name, err)
	}
	key := append([]string{string(version), runtime.GOOS, runtime.GOARCH, strings.Join(m.Links, " ")}, m.args("")...)
	return artefact.Recipe{
		Name: m.Name,
		Key:  append(key, files...),
		Make: func(ctx context.Context, out string, log io.Writer) error { return m.build(ctx, dir, out, log) },
	}, nil
}

// MissingPackages returns the Debian packages the module needs that are not
// installed on the machine.
func (m Module) MissingPackages() []string {
	return slices.DeleteFunc(slices.Clone(m.Debian), func(name string) bool {
		// dpkg keeps the list of a package's files under its name, with the
		// architecture for those that may be installed for several.
		lists, err := filepath.Glob(filepath.Join("/var/lib/dpkg/info", name+"*.list"))
		return err == nil && slices.ContainsFunc(lists, func(l string) bool {
			base := strings.TrimSuffix(filepath.Base(l), ".list")
			return base == name || base == name+":"+runtime.GOARCH
		})
	})
}

func (m Module) build(ctx context.Context, dir, out string, log io.Writer) error {
	err := process.Run(ctx, process.Command{Path: "go", Args: m.args(out), Env: m.env(), Dir: dir, Log: log})
	if err != nil {
		return m.explain(err)
	}
	for _, link := range m.Links {
		if err := os.Symlink(m.Name, filepath.Join(out, link)); err != nil {
			return fmt.Errorf("linking %s: %w", link, err)
		}
	}
	return nil
}

// explain adds the packages to install to the error of a build that needs C libraries.
func (m Module) explain(err error) error {
	if len(m.Debian) == 0 {
		return err
	}
	return fmt.Errorf("%w\nit needs the Debian packages %s", err, strings.Join(m.Debian, " "))
}

// args returns the same arguments for every build of a module, because builds share the
// compiler's cache only if their flags are the same.
func (m Module) args(out string) []string {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(append([]string{"-s", "-w"}, m.LDFlags...), " ")}
	if m.ModFile != "" {
		args = append(args, "-modfile="+m.ModFile)
	}
	if len(m.Tags) > 0 {
		args = append(args, "-tags", strings.Join(m.Tags, ","))
	}
	return append(append(args, "-o", out+string(filepath.Separator)), m.Packages...)
}

func (m Module) env() []string {
	cgo := "CGO_ENABLED=0"
	if m.CGO {
		cgo = "CGO_ENABLED=1"
	}
	return []string{"GOWORK=off", "GOFLAGS=", cgo}
}

// sourceDir finds a module's directory beside the source of this file, or
// below BERTH_LAB_SOURCE for a lab binary that was moved to another machine.
func sourceDir(module string) (string, error) {
	root := os.Getenv("BERTH_LAB_SOURCE")
	if root == "" {
		if _, file, _, ok := runtime.Caller(0); ok {
			root = filepath.Join(filepath.Dir(file), "..", "..")
		}
	}
	dir := filepath.Join(root, "build", module)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("module %s is not in %s: set BERTH_LAB_SOURCE to the lab directory of Berth's source", module, dir)
	} else if err != nil {
		return "", fmt.Errorf("finding module %s: %w", module, err)
	}
	return dir, nil
}

// contents returns name and content of every file of a module, in order, but for those that pin other versions.
func (m Module) contents(dir string) ([]string, error) {
	mod := cmp.Or(m.ModFile, "go.mod")
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if ext := filepath.Ext(name); err != nil || (ext == ".mod" || ext == ".sum") && strings.TrimSuffix(name, ext)+".mod" != mod {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, name, string(data))
		return err
	})
	return slices.Clip(all), err
}
