package linux

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/run"
)

// slack is how many bytes of a device a filesystem may leave unused before Grow starts a
// process: the remainder of a block or of an allocation group.
const slack = 1 << 20

// Grow implements mount.Mounter.
func (m *Mounter) Grow(ctx context.Context, r mount.GrowRequest) error {
	if err := r.Check(); err != nil {
		return err
	}
	return m.change(ctx, r.Target, func() error { return m.grow(r) })
}

func (m *Mounter) grow(r mount.GrowRequest) error {
	source, err := identify(r.Content)
	if err != nil {
		return err
	}
	defer source.close()
	entry, err := lookup(r.Target)
	if err != nil {
		return err
	}
	if entry == nil || !source.holds(entry) {
		return fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, r.Content.Source, r.Target)
	}
	if r.Content.IsTree() || readOnlyFilesystem(entry) {
		return nil // a tree grew with its quota
	}
	device, err := source.size()
	if err != nil {
		return err
	}
	size, err := filesystemSize(source.device, r)
	if err != nil || device-size < slack {
		return err
	}
	c := run.Command{Operation: "resize2fs", Program: "resize2fs", Args: []string{r.Content.Source}}
	if r.Filesystem == provision.XFS {
		c = run.Command{Operation: "xfs_growfs", Program: "xfs_growfs", Args: []string{"-d", r.Target}}
	}
	if _, err := m.runner.Change(c); err != nil {
		return fmt.Errorf("growing %s on %s: %w", r.Filesystem, r.Content.Source, err)
	}
	return nil
}

// size returns the size of the device in bytes. The kernel knows it without asking the device.
func (s source) size() (int64, error) {
	text, err := blockdev.ReadLine(fmt.Sprintf("/sys/dev/block/%d:%d/size", unix.Major(s.number), unix.Minor(s.number)))
	if err != nil {
		return 0, fmt.Errorf("%w: reading size of %s: %w", provision.ErrNotFound, s.device.Name(), err)
	}
	sectors, err := strconv.ParseInt(text, 10, 54)
	return sectors * blockdev.Sector, err
}

// filesystemSize returns the present size of a mounted filesystem in bytes. ext4 keeps its
// superblock in the device's page cache. xfs does not, so the superblock on the device may
// be old; only the log size, which never changes, is read from there.
func filesystemSize(device *os.File, r mount.GrowRequest) (int64, error) {
	s, err := superblockOf(device, r.Filesystem)
	if err != nil || r.Filesystem == provision.Ext4 {
		return s.size, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(r.Target, &st); err != nil {
		return 0, fmt.Errorf("reading figures of %s: %w", r.Target, err)
	}
	return int64(st.Blocks)*st.Bsize + s.log, nil //nolint:gosec // sizes of real disks
}
