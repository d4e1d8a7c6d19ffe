package staging

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// KernelShutDowns returns the paths below a directory where a filesystem is mounted that has shut itself down: the disk
// failed writes, and the filesystem takes none before it is mounted anew, also when the disk is well again. It has
// nothing to do with a mount that was asked to be read-only.
func KernelShutDowns(dir string) ([]string, error) {
	below := strings.TrimSuffix(dir, "/") + "/"
	lines, err := mountinfo.GetMounts(func(line *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(line.Mountpoint, below) || !hasShutDown(line, statFails), false
	})
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	paths := make([]string, 0, len(lines))
	for _, line := range lines {
		paths = append(paths, line.Mountpoint)
	}
	return paths, nil
}

// hasShutDown tells it of a line of the mount table. ext4 makes its superblock read-only, of which the mount
// itself knows nothing, or has words of its own, since Linux 6.13. XFS shows nothing there, and answers each
// question about a file with an error of I/O, without asking the disk.
func hasShutDown(line *mountinfo.Info, fails func(path string) bool) bool {
	switch line.FSType {
	case provision.Ext4:
		super := strings.Split(line.VFSOptions, ",")
		asked := slices.Contains(strings.Split(line.Options, ","), "ro")
		return !asked && slices.ContainsFunc(super, func(o string) bool { return o == "ro" || o == "emergency_ro" || o == "shutdown" })
	case provision.XFS:
		return fails(line.Mountpoint)
	}
	return false
}

func statFails(path string) bool {
	var s unix.Stat_t
	return errors.Is(unix.Stat(path, &s), unix.EIO)
}
