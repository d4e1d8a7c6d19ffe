package sendstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Apply applies a stream, read from a pipe until its end, to an open subvolume that can be written. An
// increment is applied to a subvolume with the content of its base, a stream in full to an empty one.
// ErrInvalid says that the stream is damaged, cut off, or of the other kind. After an error the
// subvolume holds a part of the stream.
func Apply(ctx context.Context, subvolume, pipe *os.File, increment bool) error {
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	a := &applier{tree: tree{int(subvolume.Fd())}}
	defer a.forget()
	err := a.apply(pipe, increment)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// applier applies commands to a subvolume.
type applier struct {
	tree
	// uuid of the sender's subvolume.
	uuid string
	// path of the file that was written last, and the file; nil for none.
	path string
	file *os.File
}

func (a *applier) apply(pipe *os.File, increment bool) error {
	r, err := begin(pipe)
	if err != nil {
		return err
	}
	var m message
	if err := r.next(&m); err != nil {
		return err
	}
	first := cmdSubvolume
	if increment {
		first = cmdSnapshot
	}
	if m.command != first {
		return damaged("it begins with command %d, not %d", m.command, first)
	}
	a.uuid = string(m.attr[attrUUID])
	for {
		if err := r.next(&m); err != nil {
			return err
		}
		if m.command == cmdEnd {
			return r.end()
		}
		if err := a.take(&m); err != nil {
			return fmt.Errorf("command %d of the stream on %q: %w", m.command, m.attr[attrPath], err)
		}
	}
}

// take carries one command out. What a tenant marked as immutable in the base is changed all the same.
func (a *applier) take(m *message) error {
	err := a.do(m)
	if errors.Is(err, unix.EPERM) {
		for _, path := range []int{attrPath, attrPathTo, attrPathLink} {
			if m.attr[path] != nil {
				a.loosen(string(m.attr[path]))
			}
		}
		err = a.do(m)
	}
	return err
}

func (a *applier) do(m *message) error {
	path := string(m.attr[attrPath])
	switch m.command {
	case cmdWrite:
		return a.write(path, m)
	case cmdClone:
		return a.clone(path, m)
	case cmdTruncate:
		size, err := m.number(attrSize)
		if err != nil {
			return err
		}
		f, err := a.open(path)
		if err != nil {
			return err
		}
		return unix.Ftruncate(int(f.Fd()), int64(size)) //nolint:gosec // the kernel refuses what is negative
	case cmdMode, cmdOwner, cmdTimes, cmdSetXattr, cmdRemoveXattr:
		return a.describe(path, m)
	case cmdFile, cmdDirectory, cmdNode, cmdPipe, cmdSocket, cmdSymlink:
		return a.make(path, m)
	case cmdRename, cmdLink, cmdUnlink, cmdRemove:
		a.forget() // another file may have its name now
		return a.rename(path, m)
	}
	return damaged("command %d", m.command)
}

// make makes a file of any kind.
func (a *applier) make(path string, m *message) error {
	return a.in(path, func(dir int, name string) error {
		switch m.command {
		case cmdDirectory:
			return unix.Mkdirat(dir, name, 0o700)
		case cmdSymlink:
			return unix.Symlinkat(string(m.attr[attrPathLink]), dir, name)
		case cmdFile:
			return unix.Mknodat(dir, name, unix.S_IFREG|0o600, 0)
		}
		n, err := m.numbers(attrMode, attrDevice)
		if err != nil {
			return err
		}
		kinds := map[command][]uint64{cmdNode: {unix.S_IFCHR, unix.S_IFBLK}, cmdPipe: {unix.S_IFIFO}, cmdSocket: {unix.S_IFSOCK}}
		if !slices.Contains(kinds[m.command], n[0]&unix.S_IFMT) {
			return damaged("mode %o", n[0])
		}
		return unix.Mknodat(dir, name, uint32(n[0]&(unix.S_IFMT|0o7777)), int(n[1])) //nolint:gosec // masked; a number of a device
	})
}

// rename changes names.
func (a *applier) rename(path string, m *message) error {
	return a.in(path, func(dir int, name string) error {
		switch m.command {
		case cmdUnlink:
			return unix.Unlinkat(dir, name, 0)
		case cmdRemove:
			return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		case cmdRename:
			return a.in(string(m.attr[attrPathTo]), func(to int, as string) error { return unix.Renameat(dir, name, to, as) })
		default:
			return a.in(string(m.attr[attrPathLink]), func(of int, is string) error { return unix.Linkat(of, is, dir, name, 0) })
		}
	})
}

// describe changes what a file is described by. An empty path is the subvolume itself.
func (a *applier) describe(path string, m *message) error {
	if m.command == cmdSetXattr || m.command == cmdRemoveXattr {
		return a.xattr(path, m)
	}
	change := func(dir int, name string) error {
		switch m.command {
		case cmdMode:
			mode, err := m.number(attrMode)
			if err != nil {
				return err
			}
			return unix.Fchmodat(dir, name, uint32(mode&0o7777), unix.AT_SYMLINK_NOFOLLOW) //nolint:gosec // masked
		case cmdOwner:
			n, err := m.numbers(attrUID, attrGID)
			if err != nil {
				return err
			}
			return unix.Fchownat(dir, name, int(uint32(n[0])), int(uint32(n[1])), unix.AT_SYMLINK_NOFOLLOW) //nolint:gosec // 32 bits
		default:
			var at [2]unix.Timespec
			for i, kind := range []int{attrAccessed, attrModified} {
				if len(m.attr[kind]) != 12 {
					return damaged("no time")
				}
				at[i].Sec, at[i].Nsec = int64(binary.LittleEndian.Uint64(m.attr[kind])), int64(binary.LittleEndian.Uint32(m.attr[kind][8:])) //nolint:gosec // as the sender has it
				if at[i].Nsec >= 1e9 {
					return damaged("no time")
				}
			}
			return unix.UtimesNanoAt(dir, name, at[:], unix.AT_SYMLINK_NOFOLLOW)
		}
	}
	if path == "" {
		return change(a.root, ".")
	}
	return a.in(path, change)
}

func (a *applier) xattr(path string, m *message) error {
	fd, err := a.stand(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	at, name := self(fd), string(m.attr[attrXattrName])
	if m.command == cmdSetXattr {
		return unix.Setxattr(at, name, m.attr[attrXattrData], 0)
	}
	if err := unix.Removexattr(at, name); !errors.Is(err, unix.ENODATA) {
		return err
	}
	return nil
}

// write writes data. Zeros become a hole.
func (a *applier) write(path string, m *message) error {
	at, err := m.number(attrOffset)
	if err != nil {
		return err
	}
	f, err := a.open(path)
	if err != nil {
		return err
	}
	data := m.attr[attrData]
	if at > 1<<62 {
		return damaged("offset %d", at)
	}
	if zero(data) {
		return hole(f, int64(at), int64(len(data)))
	}
	_, err = f.WriteAt(data, int64(at))
	return err
}

func zero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// hole makes a part of a file read as zeros, and the file at least as long as that.
func hole(f *os.File, at, length int64) error {
	if length == 0 {
		return nil
	}
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, length); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil || info.Size() >= at+length {
		return err
	}
	return f.Truncate(at + length)
}

// clone lets a file share data with another one of the subvolume, or with itself.
func (a *applier) clone(path string, m *message) error {
	n, err := m.numbers(attrOffset, attrCloneOffset, attrCloneLength)
	if err != nil {
		return err
	}
	if string(m.attr[attrCloneUUID]) != a.uuid {
		return damaged("data of another subvolume")
	}
	from, err := a.regular(string(m.attr[attrClonePath]), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := a.open(path)
	if err != nil {
		return err
	}
	return unix.IoctlFileCloneRange(int(to.Fd()), &unix.FileCloneRange{
		Src_fd: int64(from.Fd()), Src_offset: n[1], Src_length: n[2], Dest_offset: n[0], //nolint:gosec // a descriptor
	})
}

// open opens a file to write to it, and keeps it open: a file is written in many commands.
func (a *applier) open(path string) (*os.File, error) {
	if a.file != nil && a.path == path {
		return a.file, nil
	}
	f, err := a.regular(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	a.forget()
	a.path, a.file = path, f
	return f, nil
}

func (a *applier) forget() {
	if a.file != nil {
		_ = a.file.Close()
		a.file = nil
	}
}
