package mount

import (
	"fmt"
	"path/filepath"
	"regexp"

	"berth.dev/berth/internal/provision"
)

// flags are accepted for every filesystem. "ro" is a field of the request, and
// whatever widens what a pod may do ("dev", "suid", "remount", "bind") is missing
// on purpose.
var flags = map[string]bool{
	"noatime": true, "nodiratime": true, "relatime": true, "strictatime": true, "lazytime": true,
	"nodev": true, "noexec": true, "nosuid": true, "sync": true, "dirsync": true,
}

// data are passed to one filesystem's driver.
var data = map[string]*regexp.Regexp{
	provision.Ext4: regexp.MustCompile(`^(discard|nodiscard|barrier=1|commit=[0-9]{1,4}|data=(ordered|journal)|errors=(remount-ro|panic)|(no)?auto_da_alloc|journal_checksum|stripe=[0-9]{1,6}|max_batch_time=[0-9]{1,7}|min_batch_time=[0-9]{1,7})$`),
	provision.XFS:  regexp.MustCompile(`^(discard|nodiscard|inode32|inode64|largeio|nolargeio|logbsize=(16k|32k|64k|128k|256k|[0-9]{5,6})|logbufs=[2-8]|allocsize=[0-9]{1,7}[kmg]?|nouuid|noquota|(u|g|p)quota|swalloc|wsync)$`),
}

// CheckOptions returns ErrInvalid unless every option is on the list of those
// that are safe for the filesystem. Options come from users; a list of what is
// allowed cannot be talked around.
func CheckOptions(filesystem string, options []string) error {
	known, ok := data[filesystem]
	if !ok {
		return fmt.Errorf("%w: filesystem %q is not one of %s, %s", provision.ErrInvalid, filesystem, provision.Ext4, provision.XFS)
	}
	for _, o := range options {
		if !flags[o] && !known.MatchString(o) {
			return fmt.Errorf("%w: mount option %q is not supported for %s", provision.ErrInvalid, o, filesystem)
		}
	}
	return nil
}

// IsFlag says whether an accepted option is the same for every filesystem.
func IsFlag(option string) bool { return flags[option] }

// Check returns ErrInvalid for a request that can never be met.
func (r Request) Check() error {
	if err := checkPaths(r.Device, r.Target); err != nil {
		return err
	}
	return CheckOptions(r.Filesystem, r.Options)
}

// Check returns ErrInvalid for a request that can never be met.
func (r BindRequest) Check() error {
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
