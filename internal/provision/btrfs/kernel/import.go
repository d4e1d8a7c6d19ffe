package kernel

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
)

// Import mounts a filesystem that was found, of the disks on which it was found and of no other. udev makes each disk
// with btrfs known to the kernel, also one that a pod wrote. Of all that it knows by a UUID the kernel mounts what the
// latest superblock says. So it first forgets the others, and a mount that changes nothing shows whether it has.
func (f Found) Import() (*Filesystem, error) {
	own := map[string]string{}
	for _, node := range f.Nodes {
		n, err := blockdev.Number(node)
		if err != nil {
			return nil, err
		}
		own[fmt.Sprintf("%d:%d", unix.Major(n), unix.Minor(n))] = node
	}
	others := alike(udevDir, f.FSID, own)
	if err := forget(others); err != nil {
		return nil, err
	}
	for _, node := range f.Nodes {
		if err := control(doScan, node); err != nil {
			return nil, fmt.Errorf("making %s known to btrfs: %w", node, err)
		}
	}
	for _, options := range [][]string{{"ro", "rescue=nologreplay"}, nil} {
		fs, err := open(f.Nodes[0], f.FSID, options...)
		if err != nil {
			return nil, err
		}
		others = counted(filepath.Join(shown, f.FSID, "devices"), own)
		if len(others) == 0 && options == nil {
			return fs, nil
		}
		fs.Close()
		if len(others) > 0 {
			break
		}
	}
	return nil, errors.Join(fmt.Errorf("%w: devices %s bear filesystem %s, too, and are none of the disks that its class selects: it is not mounted with them. "+
		"The kernel is told to forget them, and the mount is tried again", provision.ErrConflict, strings.Join(slices.Sorted(maps.Values(others)), ", "), f.FSID), forget(others))
}

// udevDir is where udev keeps what it has read from devices.
const udevDir = "/run/udev/data"

// alike returns the devices, by their numbers, that bear a UUID as udev has read it, and that are none of a filesystem's
// own.
func alike(udev, fsid string, own map[string]string) map[string]string {
	others := map[string]string{}
	known, _ := filepath.Glob(filepath.Join(udev, "b*")) // none where udev does not run: it makes none known then
	for _, path := range known {
		number := strings.TrimPrefix(filepath.Base(path), "b")
		b, err := os.ReadFile(path)
		if err == nil && own[number] == "" && strings.Contains(string(b), "E:ID_FS_UUID="+fsid+"\n") {
			others[number] = nodeOfNumber(number)
		}
	}
	return others
}

// counted returns the devices that the kernel counts in a mounted filesystem, and that are none of its own.
func counted(devices string, own map[string]string) map[string]string {
	others := map[string]string{}
	entries, err := os.ReadDir(devices)
	if err != nil {
		others[""] = err.Error()
	}
	for _, e := range entries {
		if number, err := blockdev.ReadLine(filepath.Join(devices, e.Name(), "dev")); err != nil || own[number] == "" {
			others[number] = filepath.Join("/dev", e.Name())
		}
	}
	return others
}

// nodeOfNumber is the node by which the kernel itself calls a device.
func nodeOfNumber(number string) string {
	target, _ := os.Readlink(filepath.Join("/sys/dev/block", number))
	return filepath.Join("/dev", filepath.Base(target))
}

// forget has the kernel forget devices. It keeps those of a filesystem that is mounted, and says so.
func forget(devices map[string]string) (err error) {
	for _, node := range devices {
		if failure := control(doForget, node); failure != nil && !errors.Is(failure, unix.ENOENT) && !errors.Is(failure, unix.ENODEV) {
			err = errors.Join(err, fmt.Errorf("having btrfs forget %s: %w", node, failure))
		}
	}
	return err
}

// control makes a disk known to the kernel (doScan), or has the kernel forget it (doForget).
func control(what uintptr, node string) error {
	f, err := os.OpenFile("/dev/btrfs-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = ioctl(f, write, what, named(node))
	return errors.Join(err, f.Close())
}
