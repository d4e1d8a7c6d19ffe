package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// users finds what has a filesystem mounted.
type users struct{ *Filesystem }

// Users returns where a subvolume, one in it, or anything at a path of the filesystem is mounted: in
// each mount namespace of a process that this one sees. The number of the device in a mount table
// proves which filesystem a mount is of, and the id which subvolume. The path is of the filesystem
// proved so, and only adds to what is found.
func (u users) Users(subvolume uint64, path string) (targets []string, err error) {
	roots, err := u.Roots()
	if err != nil {
		return nil, err
	}
	number, err := u.number()
	if err != nil {
		return nil, err
	}
	uses := func(line *mountinfo.Info) bool {
		of := superblockNumber{line.Major, line.Minor}
		return line.FSType == "btrfs" && of == number &&
			(within(roots, mounted(line), subvolume) || line.Root == path || strings.HasPrefix(line.Root, path+"/"))
	}
	tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, table := range append([]string{"/proc/self/mountinfo"}, tables...) {
		space, err := os.Readlink(filepath.Join(filepath.Dir(table), "ns/mnt"))
		if err != nil || seen[space] {
			continue // it ended meanwhile, or shares a namespace
		}
		found, err := usersIn(table, uses)
		if table == "/proc/self/mountinfo" && err != nil {
			return nil, fmt.Errorf("reading mount table: %w", err)
		}
		seen[space] = err == nil
		targets = append(targets, found...)
	}
	if len(seen) == 0 {
		return nil, errors.New("there is no mount table")
	}
	return targets, nil
}

func usersIn(table string, uses func(*mountinfo.Info) bool) (targets []string, err error) {
	f, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := mountinfo.GetMountsFromReader(f, func(line *mountinfo.Info) (skip, stop bool) { return !uses(line), false })
	for _, line := range lines {
		targets = append(targets, line.Mountpoint)
	}
	return targets, err
}

// mounted returns the subvolume that the root of a mount is in; 0 if the line does not say.
func mounted(line *mountinfo.Info) (subvolume uint64) {
	for option := range strings.SplitSeq(line.VFSOptions, ",") {
		if id, ok := strings.CutPrefix(option, "subvolid="); ok {
			subvolume, _ = strconv.ParseUint(id, 10, 64)
		}
	}
	return subvolume
}

// within says whether a subvolume is another one, or in it.
func within(roots map[uint64]Root, id, other uint64) bool {
	var passed []uint64
	for id != 0 && !slices.Contains(passed, id) {
		if id == other {
			return true
		}
		passed, id = append(passed, id), roots[id].Parent
	}
	return false
}

// superblockNumber is the device number of a filesystem in mount tables.
type superblockNumber struct{ major, minor int }

// number returns the filesystem's own. stat shows a number of each subvolume's own instead, and this
// mount is in no table; but what the kernel says of a watch on a directory names the filesystem.
func (u users) number() (n superblockNumber, err error) {
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return n, fmt.Errorf("asking for the number of the filesystem: %w", err)
	}
	defer unix.Close(watch)
	if _, err = unix.InotifyAddWatch(watch, fmt.Sprintf("/proc/self/fd/%d", u.top.Fd()), unix.IN_DELETE_SELF|unix.IN_ONLYDIR); err != nil {
		return n, fmt.Errorf("asking for the number of the filesystem: %w", err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", watch))
	if err != nil {
		return n, fmt.Errorf("asking for the number of the filesystem: %w", err)
	}
	for field := range strings.FieldsSeq(string(text)) {
		if device, ok := strings.CutPrefix(field, "sdev:"); ok {
			d, err := strconv.ParseUint(device, 16, 32)
			return superblockNumber{int(d >> 20), int(d & (1<<20 - 1))}, err //nolint:gosec // 32 bits
		}
	}
	return n, errors.New("the kernel does not say which filesystem a watch is on")
}
