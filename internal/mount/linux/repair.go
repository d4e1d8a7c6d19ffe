package linux

import (
	"errors"
	"fmt"
	"os"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/run"
)

// The bits of the exit code of e2fsck.
const (
	fsckCorrected = 1 | 2 // damage was found and repaired
	fsckLeft      = 4     // some damage was not repaired
)

// repair makes a filesystem ready to be mounted. Whatever damage it finds, it never makes
// a new one.
//
// If an ext4 filesystem was not unmounted cleanly, or its superblock records damage,
// repair runs e2fsck -p, which makes only the repairs that need no question. xfs replays
// its log when it is mounted, and its repair tool is for administrators only.
func (m *Mounter) repair(opened *os.File, filesystem string) error {
	s, err := superblockOf(opened, filesystem)
	if err != nil || s.clean {
		return err
	}
	device := opened.Name()
	_, err = m.runner.Change(run.Command{Operation: "e2fsck", Program: "e2fsck", Args: []string{"-p", device}})
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

func superblockOf(device *os.File, filesystem string) (superblock, error) {
	s, err := readSuperblock(device, filesystem)
	if err != nil {
		return superblock{}, fmt.Errorf("device %s: %w", device.Name(), err)
	}
	return s, nil
}
