package mount

import (
	"cmp"
	"fmt"
	"path/filepath"

	"berth.dev/berth/internal/provision"
)

// Check returns ErrInvalid for a request that can never be met.
func (r Request) Check() error {
	if err := cmp.Or(checkFilesystem(r.Content, r.Filesystem), checkPaths(r.Target)); err != nil {
		return err
	}
	return CheckOptions(r.Filesystem, r.Options)
}

// Check returns ErrInvalid for a request that can never be met.
func (r BindRequest) Check() error {
	if r.Context != "" && !selinuxContext.MatchString(r.Context) {
		return fmt.Errorf("%w: %q is no SELinux context", provision.ErrInvalid, r.Context)
	}
	if r.Source == "" {
		return cmp.Or(checkDevice(r.Content), checkPaths(r.Target))
	}
	return cmp.Or(checkContent(r.Content), checkPaths(r.Source, r.Target))
}

// Check returns ErrInvalid for a request that can never be met.
func (r GrowRequest) Check() error {
	if err := cmp.Or(checkFilesystem(r.Content, r.Filesystem), checkPaths(r.Target)); err != nil {
		return err
	}
	return CheckOptions(r.Filesystem, nil)
}

// checkFilesystem accepts a volume that is the filesystem by itself, or a block device for a
// filesystem that is made on one.
func checkFilesystem(c provision.Content, name string) error {
	if c.Tree != provision.ByItself(name) {
		return fmt.Errorf("%w: %.300q cannot bear filesystem %q", provision.ErrInvalid, c.Source, name)
	}
	return checkContent(c)
}

func checkContent(c provision.Content) error {
	if !c.IsTree() {
		return checkDevice(c)
	}
	t := filesystems[c.Tree].tree
	if t == nil {
		return fmt.Errorf("%w: no volume is a filesystem %q by itself", provision.ErrInvalid, c.Tree)
	}
	return t.check(c)
}

// checkDevice accepts the path of a block device with its identity.
func checkDevice(c provision.Content) error {
	switch {
	case c.IsTree():
		return fmt.Errorf("%w: %.300q is no block device", provision.ErrInvalid, c.Source)
	case c.Identity == "":
		return fmt.Errorf("%w: nothing says what device %.300q is to be", provision.ErrInvalid, c.Source)
	}
	return checkPaths(c.Source)
}

// CheckPath returns ErrInvalid for a path that is not absolute and clean.
func CheckPath(path string) error { return checkPaths(path) }

func checkPaths(paths ...string) error {
	for _, p := range paths {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" || len(p) > 4000 {
			return fmt.Errorf("%w: %q is no clean absolute path", provision.ErrInvalid, p)
		}
	}
	return nil
}
