package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/process"
)

const initramfsFile = "initramfs"

// guestdSource is the source that the lab compiles on the machine it runs on. So a guest
// always has the guestd that belongs to the lab, and the lab needs no source tree around it.
//
//go:embed guestd/*.go reaper/*.go wire/*.go
var guestdSource embed.FS

const guestdPackage = "berth.dev/berth/lab/internal/guest"

// initramfsRecipe makes the initramfs: guestd as /init, and the boot modules
// of the kernel in the root artefact.
func initramfsRecipe(root string, base artefact.Recipe) (artefact.Recipe, error) {
	sources, err := guestdFiles()
	if err != nil {
		return artefact.Recipe{}, err
	}
	sum := sha256.New()
	for _, s := range sources {
		fmt.Fprintf(sum, "%s %d\n%s", s.name, len(s.data), s.data)
	}
	return artefact.Recipe{
		Name: "guest-boot",
		Key:  []string{"layout 1", base.Address(), runtime.Version(), fmt.Sprintf("%x", sum.Sum(nil))},
		Make: func(ctx context.Context, dir string, log io.Writer) error {
			program, err := buildGuestd(ctx, dir, sources, log)
			if err != nil {
				return fmt.Errorf("building guestd: %w", err)
			}
			out, err := os.Create(filepath.Join(dir, initramfsFile))
			if err != nil {
				return err
			}
			if err := writeInitramfs(out, program, os.DirFS(filepath.Join(root, bootDir))); err != nil {
				out.Close()
				return fmt.Errorf("writing the initramfs: %w", err)
			}
			return out.Close()
		},
	}, nil
}

type sourceFile struct {
	name string
	data []byte
}

// guestdFiles returns the source of guestd without its tests.
func guestdFiles() ([]sourceFile, error) {
	var files []sourceFile
	err := fs.WalkDir(guestdSource, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		data, err := guestdSource.ReadFile(name)
		files = append(files, sourceFile{name, data})
		return err
	})
	return files, err
}

// buildGuestd compiles guestd in a module that has nothing but its source.
func buildGuestd(ctx context.Context, dir string, sources []sourceFile, log io.Writer) ([]byte, error) {
	work := filepath.Join(dir, "source")
	defer os.RemoveAll(work)
	module := strings.TrimSuffix(guestdPackage, "/internal/guest")
	for _, s := range append(sources, sourceFile{"../../go.mod", []byte("module " + module + "\n\ngo 1.26\n")}) {
		name := filepath.Join(work, "internal/guest", filepath.FromSlash(s.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(name, s.data, 0o644); err != nil {
			return nil, err
		}
	}
	program := filepath.Join(work, "guestd.bin")
	err := process.Run(ctx, process.Command{
		Path: "go",
		Args: []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, guestdPackage + "/guestd"},
		Env:  []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOWORK=off", "GOFLAGS="},
		Dir:  work,
		Log:  log,
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(program)
}

// writeInitramfs leaves the archive uncompressed: the host reads it from its
// cache fast, and the emulated processor would unpack it slowly.
func writeInitramfs(w io.Writer, program []byte, modules fs.FS) error {
	var archive bytes.Buffer
	c := &cpioWriter{w: &archive}
	for _, name := range []string{"dev", "proc", "sys", "newroot", "modules"} {
		if err := c.directory(name); err != nil {
			return err
		}
	}
	// The console exists before devtmpfs does: the kernel opens it for /init.
	if err := c.characterDevice("dev/console", 5, 1); err != nil {
		return err
	}
	if err := c.file("init", cpioProgram, program); err != nil {
		return err
	}
	names, err := fs.Glob(modules, "*.ko")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := fs.ReadFile(modules, name)
		if err != nil {
			return err
		}
		if err := c.file(path.Join("modules", name), cpioFile, data); err != nil {
			return err
		}
	}
	if err := c.close(); err != nil {
		return err
	}
	_, err = archive.WriteTo(w)
	return err
}
