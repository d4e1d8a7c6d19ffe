package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
)

// Mapped returns all device-mapper devices by their names, and whether they are
// suspended. The call waits for none of the devices.
func (Devices) Mapped() (suspended map[string]bool, err error) { return mapped("/sys/block") }

func mapped(dir string) (suspended map[string]bool, err error) {
	devices, err := filepath.Glob(filepath.Join(dir, "dm-*", "dm"))
	if err != nil {
		return nil, err
	}
	suspended = make(map[string]bool, len(devices))
	for _, d := range devices {
		name, err := blockdev.ReadLine(filepath.Join(d, "name"))
		state := ""
		if err == nil {
			state, err = blockdev.ReadLine(filepath.Join(d, "suspended"))
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV): // it went meanwhile
		case err != nil:
			return nil, fmt.Errorf("asking whether a device is suspended: %w", err)
		default:
			suspended[name] = state == "1"
		}
	}
	return suspended, nil
}

// Unload drops the table that was loaded into a device-mapper device and is not in use.
func (Devices) Unload(name string) error {
	_, err := askMapper(unix.DM_TABLE_CLEAR, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dropping the table that is loaded into device %s: %w", name, err)
	}
	return nil
}
