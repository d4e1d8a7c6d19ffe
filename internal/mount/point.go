package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"berth.dev/berth/internal/provision"
)

// MakeDirectory makes a mount point with its parents. A link or file in its place
// is ErrInvalid: it would lead the mount elsewhere.
func MakeDirectory(target string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return fmt.Errorf("making mount point: %w", err)
	}
	return checkKind(target, os.FileMode.IsDir)
}

// MakeFile makes the file on which a device is bound, with its parents. A
// directory or link in its place is ErrInvalid.
func MakeFile(target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return fmt.Errorf("making parent of mount point: %w", err)
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err == nil {
		return f.Close()
	}
	if !os.IsExist(err) {
		return fmt.Errorf("making mount point: %w", err)
	}
	// A device there is the bind mount of an earlier call.
	return checkKind(target, func(m os.FileMode) bool { return m.IsRegular() || m&os.ModeDevice != 0 })
}

// RemovePoint removes an empty mount point that nothing is mounted on. It never removes
// files: files in it are not Berth's, and the result is an error.
func RemovePoint(target string) error {
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing mount point: %w", err)
	}
	return nil
}

func checkKind(target string, ok func(os.FileMode) bool) error {
	info, err := os.Lstat(target)
	if err != nil {
		return fmt.Errorf("looking at mount point: %w", err)
	}
	if !ok(info.Mode()) {
		return fmt.Errorf("%w: %s cannot be a mount point, it is a %s", provision.ErrInvalid, target, info.Mode().Type())
	}
	return nil
}
