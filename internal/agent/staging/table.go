package staging

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
)

// KernelMounts is the MountTable of this process's mount namespace. It compares
// device numbers: the names in the table depend on who mounted. A dataset has none, and ZFS
// itself tells its present name. The number is that of the volume's device, wherever its path
// leads; of a zvol the path is believed, for to ask a zvol is to open it, and the provisioner
// asked it when it gave the record.
func KernelMounts(v provision.Volume) ([]string, error) {
	if provision.IsDataset(v.Device) {
		return mountpoints(func(line *mountinfo.Info) bool { return line.FSType == provision.Dataset && line.Source == v.Device })
	}
	number, err := deviceNumber(v)
	if err != nil {
		return nil, fmt.Errorf("identifying device %s: %w", v.Device, err)
	}
	return mountpoints(func(line *mountinfo.Info) bool { return shows(line, number) })
}

func deviceNumber(v provision.Volume) (uint64, error) {
	if !v.Identity.IsZvol() {
		return blockdev.Find(v.Device, v.Identity)
	}
	number, err := blockdev.Number(v.Device)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: device %s", provision.ErrNotFound, v.Device)
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
