package mount

import (
	"fmt"
	"path/filepath"

	"berth.dev/berth/internal/provision"
)

// Check returns ErrInvalid for a request that can never be met.
func (r Request) Check() error {
	if err := checkPaths(r.Device, r.Target); err != nil {
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
		return checkPaths(r.Device, r.Target)
	}
	return checkPaths(r.Device, r.Source, r.Target)
}

// Check returns ErrInvalid for a request that can never be met.
func (r GrowRequest) Check() error {
	if err := checkPaths(r.Device, r.Target); err != nil {
		return err
	}
	return CheckOptions(r.Filesystem, nil)
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
