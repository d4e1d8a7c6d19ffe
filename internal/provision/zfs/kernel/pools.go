package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/zfs"
)

// statistics has a directory for each imported zpool.
const statistics = "/proc/spl/kstat/zfs"

// module has the version of the kernel's ZFS, once that is loaded.
const module = "/sys/module/zfs/version"

// Module implements zfs.Devices.
func (*Devices) Module() string { return versionIn(module) }

// versionIn returns a module's version; empty if the module does not tell it or is not there.
func versionIn(file string) string {
	version, err := blockdev.ReadLine(file)
	if err != nil {
		return ""
	}
	return version
}

// Zvols implements zfs.Devices.
func (*Devices) Zvols() (int, error) {
	entries, err := zvolsIn(blockDir)
	return len(entries), err
}

// zvolsIn returns the paths of the zvols among block devices.
func zvolsIn(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "zd[0-9]*")) }

// Pools implements zfs.Devices.
func (*Devices) Pools() ([]zfs.Pool, error) { return poolsIn(statistics) }

func poolsIn(dir string) ([]zfs.Pool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the machine has no ZFS
	}
	if err != nil {
		return nil, err
	}
	var pools []zfs.Pool
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		state, err := blockdev.ReadLine(filepath.Join(dir, e.Name(), "state"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the zpool goes, or comes
		}
		if err != nil {
			return nil, err
		}
		pools = append(pools, zfs.Pool{Name: e.Name(), State: state})
	}
	return pools, nil
}
