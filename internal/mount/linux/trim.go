package linux

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// fiTrim is FITRIM of linux/fs.h, which golang.org/x/sys/unix does not have.
const fiTrim = 0xC0185879

// trimRange is struct fstrim_range of linux/fs.h. The kernel writes the discarded bytes into length.
type trimRange struct{ start, length, least uint64 }

// xfsFSGeometryV1 is XFS_IOC_FSGEOMETRY_V1 of xfs/xfs_fs.h, which all kernels know.
const xfsFSGeometryV1 = 0x80705864

// xfsGeometry is struct xfs_fsop_geom_v1 of xfs/xfs_fs.h.
type xfsGeometry struct {
	blockSize, realtimeExtent, groupBlocks, groups uint32
	_                                              [96]byte
}

// Trim implements mount.Mounter. While it runs, the mount at the target is busy. So it is a change of the
// target: Unmount waits for it, and does not fail.
func (m *Mounter) Trim(ctx context.Context, r mount.TrimRequest) (mount.Trimmed, error) {
	if err := r.Check(); err != nil {
		return mount.Trimmed{}, err
	}
	answer := make(chan mount.Trimmed, 1) // the caller may have left
	err := m.change(ctx, r.Target, func() error {
		t, err := trim(r)
		answer <- t
		return err
	})
	if err != nil {
		return mount.Trimmed{}, err
	}
	return <-answer, nil
}

func trim(r mount.TrimRequest) (t mount.Trimmed, err error) {
	source, err := identify(r.Content)
	if err != nil {
		return t, err
	}
	defer source.close()
	size, err := source.size()
	if err != nil {
		return t, err
	}
	root, err := source.root(r.Target)
	if err != nil {
		return t, err
	}
	defer root.Close()
	end, err := partEnd(root, r)
	if err != nil {
		return t, err
	}
	t.Bytes, err = discard(root, r.Start, end-r.Start)
	if end < size {
		t.Next = end
	}
	switch {
	case errors.Is(err, unix.EINVAL) && r.Start > 0: // the filesystem is smaller than its device, and ends before
		return mount.Trimmed{}, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EROFS):
		return t, fmt.Errorf("%w: the filesystem at %s, or the device below it, discards nothing: %w", provision.ErrUnsupported, r.Target, err)
	case err != nil:
		return t, fmt.Errorf("trimming the filesystem at %s: %w", r.Target, err)
	}
	return t, nil
}

// root opens the filesystem of a device at the directory where it is mounted. The open directory itself proves
// that it is on the device: what the path leads to may change at any time.
func (s source) root(target string) (*os.File, error) {
	entry, err := lookup(target)
	if err != nil {
		return nil, err
	}
	if entry == nil || !s.holds(entry) {
		return nil, fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, s.content.Source, target)
	}
	if readOnly(entry) { // the kernel makes it so after an error, too: its map of free blocks is in doubt then
		return nil, fmt.Errorf("%w: the filesystem at %s is read-only, and is not trimmed", provision.ErrUnsupported, target)
	}
	f, err := os.OpenFile(target, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the filesystem at %s: %w", target, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Dev != s.number {
		f.Close()
		return nil, errors.Join(fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, s.content.Source, target), err)
	}
	return f, nil
}

// partEnd is the byte up to which a part is trimmed. In xfs it is the end of an allocation group. Linux discards
// each free extent of xfs whole that reaches into the part (until 6.10 at least), and an extent may be as large as
// its group: smaller parts would discard it once each.
func partEnd(dir *os.File, r mount.TrimRequest) (int64, error) {
	end := r.Start + r.Length
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &fs); err != nil {
		return 0, fmt.Errorf("looking at the filesystem at %s: %w", r.Target, err)
	}
	if fs.Type != unix.XFS_SUPER_MAGIC {
		return end, nil
	}
	var g xfsGeometry
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), xfsFSGeometryV1, uintptr(unsafe.Pointer(&g))) //nolint:gosec // a C structure
	runtime.KeepAlive(dir)
	group := int64(g.blockSize) * int64(g.groupBlocks)
	if errno != 0 || group == 0 {
		return 0, fmt.Errorf("reading the geometry of the xfs at %s: %w", r.Target, errno)
	}
	if end > math.MaxInt64-group {
		return end, nil // beyond any filesystem
	}
	return (end + group - 1) / group * group, nil
}

// discard has the kernel trim a part of the filesystem that a directory is on, and returns the discarded bytes.
func discard(dir *os.File, start, length int64) (int64, error) {
	r := trimRange{start: uint64(start), length: uint64(length)}                               //nolint:gosec // Check has seen that they are not negative
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), fiTrim, uintptr(unsafe.Pointer(&r))) //nolint:gosec // a C structure
	runtime.KeepAlive(dir)
	if errno != 0 {
		return 0, errno
	}
	return int64(r.length), nil //nolint:gosec // at most the size of the filesystem
}
