// Package kubeletdir knows the kubelet's directory: which paths Berth may touch in it, and
// where in it the volumes of a pod are.
package kubeletdir

import (
	"fmt"
	"path/filepath"
	"strings"

	"berth.dev/berth/internal/provision"
)

// Dir is the kubelet's directory. All paths of CSI requests must lie below it.
type Dir struct {
	// dir is the path that the kubelet uses, real the path in the mount table: the
	// kubelet's directory may be reached through a link.
	dir, real string
}

// New takes the directory as the kubelet names it.
func New(dir string) Dir {
	dir = filepath.Clean(dir)
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		resolved = dir
	}
	return Dir{dir: dir, real: resolved}
}

// Check refuses a path that is not plainly below the directory, or whose parent
// leads out of it through a link.
func (d Dir) Check(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || !below(d.dir, path) {
		return fmt.Errorf("%w: path %.200q is not below %s", provision.ErrInvalid, path, d.dir)
	}
	parent, err := filepath.EvalSymlinks(existing(filepath.Dir(path), d.dir))
	if err != nil {
		return fmt.Errorf("resolving path: %w", err)
	}
	if parent != d.real && !below(d.real, parent) {
		return fmt.Errorf("%w: path %.200q leads out of %s", provision.ErrInvalid, path, d.dir)
	}
	return nil
}

// Resolve names a path as the mount table does.
func (d Dir) Resolve(path string) string {
	if rest, ok := strings.CutPrefix(path, d.dir+"/"); ok {
		return filepath.Join(d.real, rest)
	}
	return path
}

// Staged returns the path, as the kubelet names it, at which a volume is staged; empty if it is not. The given
// paths are those at which the volume is mounted, as the mount table names them. The kubelet stages volumes in
// its directory of plugins; the mounts of pods are elsewhere.
func (d Dir) Staged(mounted []string) string {
	for _, path := range mounted {
		if rest, ok := strings.CutPrefix(path, d.real+"/"); ok && strings.HasPrefix(rest, "plugins/") {
			return filepath.Join(d.dir, rest)
		}
	}
	return ""
}

func below(dir, path string) bool { return strings.HasPrefix(path, dir+"/") }

// existing is the deepest directory of a path, down from top, that is there.
func existing(path, top string) string {
	for path != top && below(top, path) {
		if _, err := filepath.EvalSymlinks(path); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
	return top
}
