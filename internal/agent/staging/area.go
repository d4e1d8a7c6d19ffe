package staging

import (
	"fmt"
	"path/filepath"
	"strings"

	"berth.dev/berth/internal/provision"
)

// area is the directory below which all paths of requests must lie.
type area struct {
	// dir as the kubelet names it, and as the mount table does: the kubelet's
	// directory may be reached through a link.
	dir, real string
}

func newArea(dir string) area {
	dir = filepath.Clean(dir)
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		resolved = dir
	}
	return area{dir: dir, real: resolved}
}

// check refuses a path that is not plainly below the directory, or whose parent
// leads out of it through a link.
func (a area) check(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || !below(a.dir, path) {
		return fmt.Errorf("%w: path %.200q is not below %s", provision.ErrInvalid, path, a.dir)
	}
	parent, err := filepath.EvalSymlinks(existing(filepath.Dir(path), a.dir))
	if err != nil {
		return fmt.Errorf("resolving path: %w", err)
	}
	if parent != a.real && !below(a.real, parent) {
		return fmt.Errorf("%w: path %.200q leads out of %s", provision.ErrInvalid, path, a.dir)
	}
	return nil
}

// resolve names a path as the mount table does.
func (a area) resolve(path string) string {
	if rest, ok := strings.CutPrefix(path, a.dir+"/"); ok {
		return filepath.Join(a.real, rest)
	}
	return path
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
