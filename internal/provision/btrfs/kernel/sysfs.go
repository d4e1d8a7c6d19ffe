package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
)

const shown = "/sys/fs/btrfs"

// Mounted returns the labels of the filesystems that are mounted anywhere, by their UUIDs.
func Mounted() (map[string]string, error) {
	entries, err := os.ReadDir(shown)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing filesystems of btrfs: %w", err)
	}
	labels := map[string]string{}
	for _, e := range entries {
		label, err := os.ReadFile(filepath.Join(shown, e.Name(), "label")) // "features" has none
		if err == nil {
			labels[e.Name()] = strings.TrimSuffix(string(label), "\n")
		}
	}
	return labels, nil
}

// nodeOf returns the node of a disk of a filesystem, once the node is proved to lead to that disk.
// Any of the disks will do: the node of one may be gone, or be another's.
func nodeOf(fsid string) (string, error) {
	dir := filepath.Join(shown, fsid, "devices")
	disks, err := os.ReadDir(dir)
	if err == nil && len(disks) == 0 {
		err = errors.New("it has no disk")
	}
	if err != nil {
		return "", fmt.Errorf("finding a disk of filesystem %s: %w", fsid, err)
	}
	for _, disk := range disks {
		node, failure := leading("/dev", filepath.Join(dir, disk.Name()), disk.Name())
		if failure == nil {
			return node, nil
		}
		err = errors.Join(err, failure)
	}
	return "", fmt.Errorf("finding a disk of filesystem %s: %w", fsid, err)
}

// leading returns a node below dev that leads to the disk that a directory describes. The kernel calls
// a disk of a mounted filesystem as the last mount did. So Berth uses the name that people use.
func leading(dev, dir, name string) (string, error) {
	is, err := blockdev.ReadLine(filepath.Join(dir, "dev"))
	if err != nil {
		return "", fmt.Errorf("asking for the number of %s: %w", name, err)
	}
	nodes := []string{filepath.Join(dev, strings.ReplaceAll(name, "!", "/"))}
	if mapped, err := blockdev.ReadLine(filepath.Join(dir, "dm/name")); err == nil {
		nodes = append([]string{filepath.Join(dev, "mapper", mapped)}, nodes...)
	}
	for _, node := range nodes {
		number, failure := blockdev.Number(node)
		got := fmt.Sprintf("%d:%d", unix.Major(number), unix.Minor(number))
		if failure == nil && got == is {
			return node, nil
		}
		err = errors.Join(err, fmt.Errorf("%s does not lead to device %s: %w", node, is, errors.Join(failure, fs.ErrInvalid)))
	}
	return "", err
}

// Chunks are the parts of all disks that are set aside for one kind of content, in bytes: how much
// content they hold and have room for, and how much of the disks they take.
type Chunks struct {
	Used, Total, Raw int64
	// Profiles say how the content is spread over the disks.
	Profiles []string
}

// Disk of a filesystem: its size in bytes, and how much of it is set aside in Chunks.
type Disk struct {
	Size, Allocated int64
	Missing         bool
}

// Space of a filesystem.
type Space struct {
	Data, Metadata, System Chunks
	Disks                  []Disk
	// Node of one of its disks.
	Node string
	// ReadOnly says that all of its mounts are read-only.
	ReadOnly bool
	// Quotas says how it counts: "squota" for simple quotas, empty for not at all.
	Quotas string
}

// Space asks how much room there is.
func (f *Filesystem) Space(fsid string) (s Space, err error) {
	if s.Node, err = nodeOf(fsid); err != nil {
		return s, err
	}
	if s.Quotas, err = blockdev.ReadLine(filepath.Join(shown, fsid, "qgroups/mode")); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for kind, c := range map[string]*Chunks{"data": &s.Data, "metadata": &s.Metadata, "system": &s.System} {
		dir := filepath.Join(shown, fsid, "allocation", kind)
		for name, n := range map[string]*int64{"bytes_used": &c.Used, "total_bytes": &c.Total, "disk_total": &c.Raw} {
			if err == nil {
				*n, err = number(filepath.Join(dir, name))
			}
		}
		entries, listing := os.ReadDir(dir)
		err = errors.Join(err, listing)
		for _, e := range entries {
			if e.IsDir() {
				c.Profiles = append(c.Profiles, e.Name())
			}
		}
	}
	var info infoArgs
	stays, failure := f.readOnly()
	if err = errors.Join(err, failure, ioctl(f.top, read, doInfo, &info)); err != nil {
		return s, fmt.Errorf("asking for the room in filesystem %s: %w", fsid, err)
	}
	s.ReadOnly = stays
	for id := uint64(1); id <= info.maxID; id++ {
		d := deviceArgs{id: id}
		switch err := ioctl(f.top, read|write, doDeviceInfo, &d); {
		case errors.Is(err, unix.ENODEV): // it was removed
			continue
		case err != nil:
			return s, err
		}
		missing, _ := blockdev.ReadLine(filepath.Join(shown, fsid, "devinfo", strconv.FormatUint(id, 10), "missing"))
		s.Disks = append(s.Disks, Disk{Size: int64(d.total), Allocated: int64(d.allocated), Missing: missing == "1"}) //nolint:gosec // sizes of real disks
	}
	return s, nil
}

func number(path string) (int64, error) {
	text, err := blockdev.ReadLine(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return int64(min(n, 1<<62)), err //nolint:gosec // bounded
}

// Quota says how much a group of subvolumes takes, in bytes, and how much it may take; 0 is no
// limit.
type Quota struct{ Taken, Limit int64 }

// Quotas returns what the volumes take and may take, by the ids of their subvolumes. The kernel
// counts something once it is on its way to the disk.
func Quotas(fsid string) (map[uint64]Quota, error) {
	entries, err := os.ReadDir(filepath.Join(shown, fsid, "qgroups"))
	if err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	volumes := map[uint64]Quota{}
	for _, e := range entries {
		var id uint64
		if _, err := fmt.Sscanf(e.Name(), "1_%d", &id); err == nil && id != markID {
			volumes[id] = quotaOf(fsid, volumeLevel|id)
		}
	}
	return volumes, nil
}

// Taken returns what one volume takes, by the id of its subvolume; 0 if nothing is counted for it.
func Taken(fsid string, volume uint64) (int64, error) {
	taken, err := number(filepath.Join(groupDir(fsid, volumeLevel|volume), "referenced"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return taken, err
}

// groupDir is where the kernel shows a group of subvolumes.
func groupDir(fsid string, group uint64) string {
	return filepath.Join(shown, fsid, "qgroups", fmt.Sprintf("%d_%d", group>>48, group&(volumeLevel-1)))
}

func quotaOf(fsid string, group uint64) (q Quota) {
	dir := groupDir(fsid, group)
	q.Taken, _ = number(filepath.Join(dir, "referenced"))
	if flags, _ := number(filepath.Join(dir, "limit_flags")); flags&referenced != 0 {
		q.Limit, _ = number(filepath.Join(dir, "max_referenced"))
	}
	if q.Limit == 1<<62 {
		q.Limit = 0
	}
	return q
}
