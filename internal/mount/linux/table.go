package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// want describes the mount that shall be at a target.
type want struct {
	source
	readOnly bool
	// node says that the device's node itself is bound, not its filesystem.
	node bool
	// context is the SELinux context of the filesystem; empty is content with any.
	context string
}

// mounted says whether just that is at a target already; if something else is, the
// error is ErrConflict.
func mounted(target string, w want) (bool, error) {
	entry, err := lookup(target)
	if entry == nil || err != nil {
		return false, err
	}
	same := w.holds(entry)
	if w.node {
		number, err := deviceNumber(target)
		same = err == nil && number == w.number
	}
	if !same {
		return false, fmt.Errorf("%w: %s is mounted at %s", provision.ErrConflict, entry.Source, target)
	}
	if readOnly(entry) != w.readOnly {
		return false, fmt.Errorf("%w: %s is mounted at %s with options %s", provision.ErrConflict, entry.Source, target, entry.Options)
	}
	err = labelled(entry, w)
	return err == nil, err
}

// labelled is nil if a mounted filesystem bears the SELinux context that is wanted.
func labelled(e *mountinfo.Info, w want) error {
	shown := mount.ShownContext(e.VFSOptions)
	if w.context == "" || w.node || mount.SameContext(shown, w.context) {
		return nil
	}
	return fmt.Errorf("%w: %s is mounted at %s with SELinux context %q, and %q is asked: a volume has one at a time, for all of its pods",
		provision.ErrConflict, e.Source, e.Mountpoint, shown, w.context)
}

// lookup returns the topmost mount at a target, nil if there is none or no such
// path. It never touches what is mounted, so a dead device does not hang it.
func lookup(target string) (*mountinfo.Info, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(target))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking up mounts of %s: %w", target, err)
	}
	entries, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(filepath.Join(parent, filepath.Base(target))))
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	if len(entries) == 0 {
		return nil, nil
	}
	return entries[len(entries)-1], nil
}

// source is what the mount table knows a volume by: a block device's number, or the name
// of a dataset, which is mounted from no device.
type source struct {
	number  uint64
	dataset string
}

// identify returns what a device is known by.
func identify(device string) (source, error) {
	if provision.IsDataset(device) {
		return source{dataset: device}, nil
	}
	number, err := deviceNumber(device)
	return source{number: number}, err
}

func (s source) holds(e *mountinfo.Info) bool {
	if s.dataset != "" {
		return e.Root == "/" && e.FSType == provision.Dataset && e.Source == s.dataset
	}
	return holds(e, s.number)
}

// users returns where the filesystem of a device is mounted.
func users(device uint64) ([]string, error) {
	entries, err := mountinfo.GetMounts(func(e *mountinfo.Info) (skip, stop bool) { return !holds(e, device), false })
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	var targets []string
	for _, e := range entries {
		targets = append(targets, e.Mountpoint)
	}
	return targets, nil
}

func holds(e *mountinfo.Info, device uint64) bool {
	return e.Root == "/" && uint32(e.Major) == unix.Major(device) && uint32(e.Minor) == unix.Minor(device) //nolint:gosec // device numbers
}

// readOnly is true of a read-only mount and of a mount of a read-only filesystem.
func readOnly(e *mountinfo.Info) bool {
	return slices.Contains(strings.Split(e.Options, ","), "ro") || slices.Contains(strings.Split(e.VFSOptions, ","), "ro")
}

// deviceNumber returns the number of a block device, or ErrNotFound.
func deviceNumber(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("%w: device %s: %w", provision.ErrNotFound, path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, fmt.Errorf("%w: %s is no block device", provision.ErrNotFound, path)
	}
	return st.Rdev, nil
}
