package mount

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"

	"berth.dev/berth/internal/provision"
)

// Check returns ErrInvalid for a request that can never be met.
func (r Request) Check() error {
	if err := cmp.Or(checkDevice(r.Device, r.Identity, r.Filesystem == provision.Dataset), checkPaths(r.Target)); err != nil {
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
		return cmp.Or(checkDevice(r.Device, r.Identity, false), checkPaths(r.Target))
	}
	return cmp.Or(checkDevice(r.Device, r.Identity, provision.IsDataset(r.Device)), checkPaths(r.Source, r.Target))
}

// Check returns ErrInvalid for a request that can never be met.
func (r GrowRequest) Check() error {
	if err := cmp.Or(checkDevice(r.Device, r.Identity, r.Filesystem == provision.Dataset), checkPaths(r.Target)); err != nil {
		return err
	}
	return CheckOptions(r.Filesystem, nil)
}

// A dataset below a zpool. The kernel takes anything for the source of a mount.
var datasetName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)+$`)

const maxDatasetName = 255

// checkDevice wants the path of a device and what it is proved by, or the name of a dataset.
func checkDevice(device string, is provision.Identity, dataset bool) error {
	if !dataset {
		if is == "" {
			return fmt.Errorf("%w: nothing says what device %.300q is to be", provision.ErrInvalid, device)
		}
		return checkPaths(device)
	}
	if len(device) > maxDatasetName || !datasetName.MatchString(device) {
		return fmt.Errorf("%w: %.300q is no dataset of ZFS", provision.ErrInvalid, device)
	}
	return nil
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
