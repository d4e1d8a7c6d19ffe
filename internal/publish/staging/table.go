package staging

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
)

// KernelMounts is the MountTable of this process's mount namespace. It compares device
// numbers: the names in the table depend on the program that mounted. The lines of a tree are
// those that mount.Within knows. The number is that of the device with the volume's identity,
// wherever its path leads. KernelMounts trusts the path of a device whose identity only opening it
// proves: the provisioner checked it when it gave the record.
func KernelMounts(v provision.Volume) ([]string, error) {
	if v.Content.IsTree() {
		return mountpoints(func(line *mountinfo.Info) bool {
			_, ok := mount.Within(v.Content, line)
			return ok
		})
	}
	number, err := deviceNumber(v)
	if err != nil {
		return nil, fmt.Errorf("identifying device %s: %w", v.Content.Source, err)
	}
	return mountpoints(func(line *mountinfo.Info) bool { return shows(line, number) })
}

func deviceNumber(v provision.Volume) (uint64, error) {
	if !v.Content.Identity.NeedsOpening() {
		return blockdev.Find(v.Content.Source, v.Content.Identity)
	}
	number, err := blockdev.Number(v.Content.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: device %s", provision.ErrNotFound, v.Content.Source)
	}
	return number, err
}

func mountpoints(of func(*mountinfo.Info) bool) ([]string, error) {
	lines, err := mountinfo.GetMounts(func(line *mountinfo.Info) (skip, stop bool) { return !of(line), false })
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	paths := make([]string, 0, len(lines))
	for _, line := range lines {
		paths = append(paths, line.Mountpoint)
	}
	return paths, nil
}

// shows says whether a line is a filesystem on the device, or a bind of the
// device's node. Looking at a node does not open the device.
func shows(line *mountinfo.Info, number uint64) bool {
	if unix.Mkdev(uint32(line.Major), uint32(line.Minor)) == number {
		return true
	}
	if line.Root == "/" || line.FSType != "devtmpfs" && line.FSType != "tmpfs" {
		return false
	}
	bound, err := blockdev.Number(line.Mountpoint)
	return err == nil && bound == number
}
