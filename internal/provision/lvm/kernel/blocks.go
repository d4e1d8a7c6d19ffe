package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/lvm/group"
)

// Blocks returns the block devices of this machine. It opens only loop devices, for which the
// kernel reads nothing, and asks each for the device behind it: the path that sysfs shows may not
// exist in a container.
func (d Devices) Blocks() (map[string]group.Block, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	return blocks("/sys", names, backing)
}

// Name returns the kernel's name of a block device.
func (Devices) Name(path string) (string, error) {
	n, err := blockdev.Number(path)
	if err != nil {
		return "", err
	}
	return nameOf("/sys", n)
}

// udevDir is where udev keeps what it knows.
const udevDir = "/run/udev/data"

// Known implements lvm.Devices.
func (Devices) Known(name string) group.Known { return known("/sys", udevDir, name) }

func known(sys, udev, name string) (k group.Known) {
	number, err := blockdev.ReadLine(filepath.Join(sys, "class/block", name, "dev"))
	if err != nil {
		return k
	}
	b, _ := os.ReadFile(filepath.Join(udev, "b"+number)) // a machine without udev has none
	for line := range strings.Lines(string(b)) {
		switch kind, text, _ := strings.Cut(strings.TrimSpace(line), ":"); {
		case kind == "S":
			k.Links = append(k.Links, "/dev/"+text)
		case kind == "E" && text == "ID_FS_TYPE=LVM2_member":
			k.Member = true
		}
	}
	return k
}

// devicesFiles is where LVM keeps its devices files.
const devicesFiles = "/etc/lvm/devices"

// DevicesFile says whether LVM has a devices file of that name.
func (Devices) DevicesFile(name string) bool {
	_, err := os.Stat(filepath.Join(devicesFiles, filepath.Base(name)))
	return err == nil
}

// nameOf returns the kernel's name of the device with this number.
func nameOf(sys string, n uint64) (string, error) {
	target, err := os.Readlink(filepath.Join(sys, "dev/block", fmt.Sprintf("%d:%d", unix.Major(n), unix.Minor(n))))
	return filepath.Base(target), err
}

// blocks reads the block devices from sysfs. It has the device mapper's names of most of its devices,
// and calls backing for each loop device.
func blocks(sys string, names map[string]string, backing func(loop string) (n uint64, err error)) (map[string]group.Block, error) {
	dir := filepath.Join(sys, "class/block")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing block devices: %w", err)
	}
	all := make(map[string]group.Block, len(entries))
	for _, e := range entries {
		b, err := block(sys, filepath.Join(dir, e.Name()), names, backing)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking at block device %s: %w", e.Name(), err)
		}
		all[e.Name()] = b
	}
	return all, nil
}

// gone says whether an error means that a device disappeared while it was read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

func block(sys, dir string, names map[string]string, backing func(string) (uint64, error)) (b group.Block, err error) {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, mapperPrefix) {
		if b.Mapping = names[name]; b.Mapping == "" { // it was made after the names were read
			b.Mapping, err = blockdev.ReadLine(filepath.Join(dir, "dm/name"))
		}
		if err != nil || b.IsVolume() { // a node may have a thousand, and no rule asks for what is below
			return b, err
		}
	}
	if b.Below, err = below(dir); err != nil {
		return b, err
	}
	switch {
	case b.Mapping != "":
	case len(b.Below) > 0:
		b.Partition, err = partitionName(dir)
	case strings.HasPrefix(name, "loop"):
		b.Backing, b.Over, err = leadsTo(sys, dir, backing)
	default:
		b.Remote = blockdev.Remote(dir)
	}
	return b, err
}

// below returns the disk of a partition, or the devices that any other device is made of.
func below(dir string) (names []string, err error) {
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		path, err := filepath.EvalSymlinks(dir)
		return []string{filepath.Base(filepath.Dir(path))}, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "slaves"))
	if err != nil && !gone(err) {
		return nil, err
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// partitionName returns the name of a partition in its partition table. It is empty for a
// partition without a name and for any other device.
func partitionName(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "uevent"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PARTNAME="); ok {
			return name, nil
		}
	}
	return "", nil
}

// unknown stands for the device behind a loop device that cannot be asked for it.
const unknown = "that cannot be told"

// leadsTo returns the path behind a loop device, and the kernel's name of the block device there
// if it is one. Both are empty for a loop device that is not attached.
func leadsTo(sys, dir string, backing func(string) (uint64, error)) (path, over string, err error) {
	path, err = blockdev.ReadLine(filepath.Join(dir, "loop/backing_file"))
	if gone(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	n, err := backing(filepath.Base(dir))
	switch {
	case errors.Is(err, unix.ENXIO): // it was detached meanwhile
		return "", "", nil
	case err != nil: // it may lead to any device
		over = unknown
	case n != 0:
		if over, err = nameOf(sys, n); err != nil {
			over = fmt.Sprintf("%d:%d", unix.Major(n), unix.Minor(n)) // the device is gone
		}
	}
	return path, over, nil
}

// backing returns the number of the block device behind a loop device; 0 if a file is behind it.
func backing(loop string) (uint64, error) {
	fd, err := unix.Open(filepath.Join("/dev", loop), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", loop, err)
	}
	defer unix.Close(fd)
	status, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		return 0, fmt.Errorf("asking %s: %w", loop, err)
	}
	return status.Rdevice, nil
}
