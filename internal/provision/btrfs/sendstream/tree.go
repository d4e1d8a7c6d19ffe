package sendstream

import (
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// tree resolves the paths of a stream beneath the root of a subvolume, an open directory. No
// symbolic link is followed, and no path leads out of it.
type tree struct{ root int }

// beneath opens a path as no more than a place in the tree.
func (t tree) beneath(path string, flags uint64) (fd int, err error) {
	return unix.Openat2(t.root, path, &unix.OpenHow{
		Flags:   flags | unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
}

// in calls do with the directory of a path and the name in it.
func (t tree) in(at string, do func(dir int, name string) error) error {
	dir, name := path.Split(at)
	if name == "" || name == "." || name == ".." || len(dir) > 0 && dir[0] == '/' {
		return damaged("path %.80q", at)
	}
	if dir == "" {
		return do(t.root, name)
	}
	fd, err := t.beneath(dir, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd, name)
}

// stand returns a descriptor that stands for a file of any kind, and does not open it. An empty path
// is the root.
func (t tree) stand(at string) (fd int, err error) {
	if at == "" {
		at = "."
	}
	return t.beneath(at, 0)
}

// self is the path of what a descriptor stands for.
func self(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// regular opens a regular file, and nothing else: to open a device or a pipe has effects of its own.
func (t tree) regular(at string, flags int) (*os.File, error) {
	fd, err := t.beneath(at, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, damaged("%.80q is no regular file", at)
	}
	return os.OpenFile(self(fd), flags, 0)
}

// loosen takes off the flags that keep a file, and the directory that it is in, from being changed.
func (t tree) loosen(at string) {
	dir, _ := path.Split(at)
	for _, each := range []string{dir, at} {
		fd, err := t.stand(each)
		if err != nil {
			continue
		}
		unbind(fd)
		unix.Close(fd)
	}
}

func unbind(fd int) {
	const forbids = 0x10 | 0x20 // immutable, append only
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	f, err := os.Open(self(fd))
	if err != nil {
		return
	}
	defer f.Close()
	if flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS); err == nil && flags&forbids != 0 {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags&^forbids))
	}
}
