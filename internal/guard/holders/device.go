package holders

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
)

// openDevice opens a block device by its number. The name comes from the kernel, and the device that was
// opened is compared.
func (m *host) openDevice(device string, flags int) (*os.File, error) {
	text, err := os.ReadFile(filepath.Join(m.sys, "dev/block", device, "uevent"))
	if err != nil {
		return nil, fmt.Errorf("looking for block device %s: %w", device, err)
	}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME=")
		if !ok {
			continue
		}
		f, err := m.open(filepath.Join(m.dev, name), flags)
		if err != nil {
			return nil, fmt.Errorf("opening block device %s: %w", device, err)
		}
		var st unix.Stat_t
		if err = unix.Fstat(int(f.Fd()), &st); err == nil && number(unix.Major(st.Rdev), unix.Minor(st.Rdev)) != device {
			err = fmt.Errorf("%s is not block device %s", f.Name(), device)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
	return nil, fmt.Errorf("the kernel has no name for block device %s", device)
}

// givenUp tells whether a device did not open because the kernel has given its SCSI unit up ("offline"). The kernel sends
// such a unit no command, and the agent removes it as soon as its epoch is closed. A unit whose session is away does not
// open either. It is "transport-offline", and takes commands again after the next login, so it counts as held.
func (m *host) givenUp(device string, err error) bool {
	if !errors.Is(err, unix.ENXIO) {
		return false
	}
	state, err := os.ReadFile(filepath.Join(m.sys, "dev/block", device, "device/state"))
	return err == nil && strings.TrimSpace(string(state)) == "offline"
}

// setReadOnly makes the kernel refuse writes to a device, or take them again. A device that is gone
// takes none, and neither does one that the kernel has given up.
func (m *host) setReadOnly(device string, set bool) error {
	f, err := m.openDevice(device, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) || m.givenUp(device, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := m.readOnly(f, set); err != nil {
		return fmt.Errorf("changing whether block device %s may be written: %w", device, err)
	}
	return nil
}

// looped names a loop device of this machine that is made of the volume, or of a file in it: no
// process has that open, and the loop device claims nothing.
func (m *host) looped(h guard.Holding) (string, error) {
	loops, _ := filepath.Glob(filepath.Join(m.sys, "block/loop*/loop")) // it fails only for a malformed pattern
	for _, dir := range loops {
		name := filepath.Base(filepath.Dir(dir))
		f, err := m.open(filepath.Join(m.dev, name), os.O_RDONLY)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("asking a loop device what it is made of: %w", err)
		}
		status, err := m.loop(f)
		f.Close()
		if errors.Is(err, unix.ENXIO) { // made of nothing meanwhile
			continue
		}
		if err != nil {
			return "", fmt.Errorf("asking %s what it is made of: %w", name, err)
		}
		if files(h) == number(unix.Major(status.Device), unix.Minor(status.Device)) || h.Block && h.Device == number(unix.Major(status.Rdevice), unix.Minor(status.Rdevice)) {
			return name + " is made of it", nil
		}
	}
	return "", nil
}

// idle returns nil if the kernel uses a device for nothing: an exclusive opener is refused while a
// filesystem, also one that is mounted nowhere any more, or another device uses it. What was
// written before has reached the device then, unless the kernel has given the device up: what it lacks is lost.
func (m *host) idle(device string) error {
	f, err := m.openDevice(device, os.O_RDONLY|unix.O_EXCL)
	if errors.Is(err, os.ErrNotExist) || m.givenUp(device, err) {
		return nil
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("a filesystem or another device still uses the volume: %w", err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("flushing block device %s: %w", device, err)
	}
	return nil
}
