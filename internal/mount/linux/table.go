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
	"berth.dev/berth/internal/provision/blockdev"
)

// want describes the mount that shall be at a target.
type want struct {
	source
	readOnly bool
	// node says that the device's node itself is bound, not its filesystem.
	node bool
	// context is the SELinux context of the filesystem; empty accepts any.
	context string
}

// mounted says whether the wanted mount is at a target already. Another mount there is
// ErrConflict.
func mounted(target string, w want) (bool, error) {
	entry, err := lookup(target)
	if entry == nil || err != nil {
		return false, err
	}
	same := w.holds(entry)
	if w.node {
		number, err := blockdev.Number(target)
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

// labelled returns nil if a mounted filesystem has the wanted SELinux context.
func labelled(e *mountinfo.Info, w want) error {
	shown := mount.ShownContext(e.VFSOptions)
	if w.context == "" || w.node || mount.SameContext(shown, w.context) {
		return nil
	}
	return fmt.Errorf("%w: %s is mounted at %s with SELinux context %q, and %q is asked: a volume has one at a time, for all of its pods",
		provision.ErrConflict, e.Source, e.Mountpoint, shown, w.context)
}

// lookup returns the topmost mount at a target, nil if there is none or no such
// path. It never accesses the mounted filesystem, so it does not hang on a dead device.
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

// source identifies a volume in the mount table: by a block device's number, or as a tree.
type source struct {
	content provision.Content
	number  uint64
	// device is open, and proved to be the volume's. Until it is closed no other device can
	// get its number.
	device *os.File
}

// identify returns the source of a volume. It is valid until the caller closes it.
func identify(c provision.Content) (source, error) {
	if c.IsTree() {
		return source{content: c}, nil
	}
	f, err := os.Open(c.Source)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return source{}, fmt.Errorf("%w: device %s: %w", provision.ErrNotFound, c.Source, err)
	case err != nil: // also for a node that leads to no device
		return source{}, fmt.Errorf("%w: opening device %s: %w", provision.ErrUnavailable, c.Source, err)
	}
	s := source{content: c, device: f}
	err = blockdev.Prove(int(f.Fd()), c.Source, c.Identity)
	if err == nil {
		s.number, err = numberOf(f)
	}
	if err != nil {
		f.Close()
		return source{}, err
	}
	return s, nil
}

func (s source) close() {
	if s.device != nil {
		s.device.Close()
	}
}

func numberOf(f *os.File) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, fmt.Errorf("looking at %s: %w", f.Name(), err)
	}
	return st.Rdev, nil
}

func (s source) holds(e *mountinfo.Info) bool {
	if s.content.IsTree() {
		path, ok := mount.Within(s.content, e)
		return ok && path == "/"
	}
	return holds(e, s.number)
}

// users returns the paths at which the filesystem of a device is mounted.
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
	return slices.Contains(strings.Split(e.Options, ","), "ro") || readOnlyFilesystem(e)
}

// readOnlyFilesystem is true if no mount of the filesystem can be written, and not of a read-only mount beside
// writable ones.
func readOnlyFilesystem(e *mountinfo.Info) bool {
	return slices.Contains(strings.Split(e.VFSOptions, ","), "ro")
}
