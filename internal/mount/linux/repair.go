package linux

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// The bits of the exit code of e2fsck.
const (
	fsckCorrected = 1 | 2 // damage was found and repaired
	fsckLeft      = 4     // some damage was not repaired
)

// xfsDamaged is the exit code of xfs_repair -n for a filesystem with damage.
const xfsDamaged = 1

// repair makes a filesystem ready to be mounted. Whatever damage it finds, it never makes
// a new one.
//
// If an ext4 filesystem was not unmounted cleanly, or its superblock records damage,
// repair runs e2fsck -p, which makes only the repairs that need no question. xfs replays
// its log when it is mounted, and its repair tool is for administrators only.
//
// whole has all of the filesystem checked, however it was unmounted.
func (m *Mounter) repair(opened *os.File, filesystem string, whole bool) error {
	s, err := superblockOf(opened, filesystem)
	switch {
	case err != nil:
		return err
	case whole && filesystem == provision.XFS:
		return m.inspect(opened.Name())
	case whole:
		return m.e2fsck(opened.Name(), "-f", "-p")
	case s.clean:
		return nil
	}
	return m.e2fsck(opened.Name(), "-p")
}

func (m *Mounter) e2fsck(device string, options ...string) error {
	_, err := m.runner.Change(run.Command{Operation: "e2fsck", Program: "e2fsck", Args: append(options, device)})
	exit, exited := errors.AsType[*run.ExitError](err)
	switch {
	case err == nil:
		return nil
	case exited && exit.Code&^fsckCorrected == 0:
		return nil
	case exited && exit.Code > 0 && exit.Code&fsckLeft != 0:
		return fmt.Errorf("%w: %s needs a repair by hand (e2fsck %s): %w", mount.ErrCorrupt, device, device, err)
	default:
		return fmt.Errorf("repairing %s: %w", device, err)
	}
}

// inspect looks for damage in an xfs filesystem, and repairs none. Its tool takes what the log still has for damage,
// so the kernel replays the log before.
func (m *Mounter) inspect(device string) error {
	if err := m.replay(device); errors.Is(err, unix.EUCLEAN) || errors.Is(err, unix.EBADMSG) {
		return fmt.Errorf("%w: replaying the log of %s: %w: repair it by hand (xfs_repair %s)", mount.ErrCorrupt, device, err, device)
	} else if err != nil {
		return fmt.Errorf("replaying the log of %s: %w", device, err)
	}
	_, err := m.runner.Change(run.Command{Operation: "xfs_repair", Program: "xfs_repair", Args: []string{"-n", device}})
	exit, exited := errors.AsType[*run.ExitError](err)
	switch {
	case err == nil:
		return nil
	case exited && exit.Code == xfsDamaged:
		return fmt.Errorf("%w: %s needs a repair by hand (xfs_repair %s): %w", mount.ErrCorrupt, device, device, err)
	default:
		return fmt.Errorf("checking %s: %w", device, err)
	}
}

// replay has the kernel open an xfs filesystem and close it again. Nothing is mounted anywhere: whatever ends this
// process ends that, too.
func replay(device string) (err error) {
	fd, err := unix.Fsopen(provision.XFS, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.FsconfigSetString(fd, "source", device); err != nil {
		return err
	}
	return unix.FsconfigCreate(fd)
}

func superblockOf(device *os.File, filesystem string) (superblock, error) {
	s, err := readSuperblock(device, filesystem)
	if err != nil {
		return superblock{}, fmt.Errorf("device %s: %w", device.Name(), err)
	}
	return s, nil
}
