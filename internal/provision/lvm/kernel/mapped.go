package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/lvm/group"
)

// Mapped returns all device-mapper devices by their names. The call waits for none of the devices.
func (Devices) Mapped() (map[string]group.Mapping, error) { return mapped("/sys/block") }

func mapped(dir string) (map[string]group.Mapping, error) {
	devices, err := filepath.Glob(filepath.Join(dir, mapperPrefix+"*"))
	if err != nil {
		return nil, err
	}
	all := make(map[string]group.Mapping, len(devices))
	for _, d := range devices {
		var values [3]string
		for i, file := range []string{"dm/name", "dm/suspended", "ro"} {
			if values[i], err = blockdev.ReadLine(filepath.Join(d, file)); err != nil {
				break
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV): // it went meanwhile
		case err != nil:
			return nil, fmt.Errorf("reading the state of a device: %w", err)
		default:
			all[values[0]] = group.Mapping{Suspended: values[1] == "1", ReadOnly: values[2] == "1"}
		}
	}
	return all, nil
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
