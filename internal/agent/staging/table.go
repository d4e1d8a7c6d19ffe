package staging

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// KernelMounts is the MountTable of this process's mount namespace. It compares
// device numbers: the names in the table depend on who mounted. A dataset has none, and ZFS
// itself tells its present name.
func KernelMounts(device string) ([]string, error) {
	if provision.IsDataset(device) {
		return mountpoints(func(line *mountinfo.Info) bool { return line.FSType == provision.Dataset && line.Source == device })
	}
	number, err := deviceNumber(device)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: device %s", provision.ErrNotFound, device)
	}
	if err != nil {
		return nil, fmt.Errorf("identifying device %s: %w", device, err)
	}
	return mountpoints(func(line *mountinfo.Info) bool { return shows(line, number) })
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
	bound, err := deviceNumber(line.Mountpoint)
	return err == nil && bound == number
}

func deviceNumber(path string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return 0, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, fmt.Errorf("%s is no block device", path)
	}
	return stat.Rdev, nil
}
