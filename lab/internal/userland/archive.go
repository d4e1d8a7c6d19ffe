package userland

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/process"
)

// archive is Debian's package archive as this machine reaches it, with every component
// that the wanted packages are in: ZFS's are in contrib, which few machines list. Its
// package lists are separate from those of the machine's own apt.
type archive struct {
	dir string
	// architecture of the packages, in Debian's words, which are Go's.
	architecture string
}

// components of Debian that the wanted packages are in.
const components = "main contrib"

// machineLists is the directory of the machine's package lists. It changes with each update
// of apt.
const machineLists = "/var/lib/apt/lists"

// openArchive fetches the package lists of the archive for an architecture. It does so again
// after each update of the machine's own apt.
func openArchive(ctx context.Context, store *artefact.Store, architecture string) (archive, error) {
	out, err := process.Output(ctx, process.Command{
		Path: "apt-get",
		Args: []string{"indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages", "Origin: Debian"},
		Log:  io.Discard,
	})
	if err != nil {
		return archive{}, fmt.Errorf("asking apt where Debian is: %w", err)
	}
	sources := sourcesOf(out)
	if sources == "" {
		return archive{}, errors.New("apt knows no release of Debian on this machine: apt-get update may help")
	}
	lists, err := os.Stat(machineLists)
	if err != nil {
		return archive{}, fmt.Errorf("looking at apt's lists: %w", err)
	}
	dir, err := store.Get(ctx, artefact.Recipe{
		Name: "debian-lists",
		Key:  []string{"layout 1", architecture, sources, lists.ModTime().UTC().String()},
		Make: func(ctx context.Context, dir string, log io.Writer) error {
			return archive{dir, architecture}.update(ctx, sources, log)
		},
	})
	return archive{dir, architecture}, err
}

// sourcesOf turns lines of a site and a release into a list of sources.
func sourcesOf(out []byte) string {
	var sources []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			sources = append(sources, "deb "+fields[0]+" "+fields[1]+" "+components+"\n")
		}
	}
	slices.Sort(sources)
	return strings.Join(slices.Compact(sources), "")
}

func (a archive) sources() string { return filepath.Join(a.dir, "sources.list") }
func (a archive) lists() string   { return filepath.Join(a.dir, "lists") }

func (a archive) update(ctx context.Context, sources string, log io.Writer) error {
	if err := os.MkdirAll(filepath.Join(a.lists(), "partial"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(a.sources(), []byte(sources), 0o644); err != nil {
		return err
	}
	args := append(a.options(), "-q", "-o", "Acquire::Languages=none",
		"-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false", "update", "--error-on=any")
	if err := process.Run(ctx, process.Command{Path: "apt-get", Args: args, Log: log}); err != nil {
		return fmt.Errorf("fetching the lists of Debian's packages: %w", err)
	}
	return nil
}

// options returns the options that make apt use only the archive and write nothing elsewhere.
func (a archive) options() []string {
	var args []string
	for _, o := range []string{
		"Dir::Etc::sourcelist=" + a.sources(), "Dir::Etc::sourceparts=-", "Dir::State::lists=" + a.lists(),
		"Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=", "APT::Sandbox::User=root",
		"APT::Architecture=" + a.architecture, "APT::Architectures=" + a.architecture,
	} {
		args = append(args, "-o", o)
	}
	return args
}
