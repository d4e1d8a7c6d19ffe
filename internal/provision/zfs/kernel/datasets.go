package kernel

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mounted implements zfs.Devices. The kernel keeps statistics of every filesystem of ZFS
// that is mounted, in whichever mount namespace: a mount table shows one namespace.
func (*Devices) Mounted(dataset string) bool { return mountedIn(statistics, dataset) }

func mountedIn(dir, dataset string) bool {
	zpool, _, _ := strings.Cut(dataset, "/")
	files, err := filepath.Glob(filepath.Join(dir, zpool, "objset-0x*"))
	if err != nil {
		return true
	}
	for _, file := range files {
		name, err := objectSet(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // unmounted meanwhile
		}
		if err != nil || name == dataset {
			return true
		}
	}
	return false
}

// objectSet returns the dataset of a file of statistics, whose lines have name, type and value.
func objectSet(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "dataset_name" {
			return fields[2], nil
		}
	}
	if lines.Err() != nil {
		return "", lines.Err()
	}
	return "", errors.New("statistics that name no dataset")
}

// writeOutFiles writes out a filesystem of ZFS that is mounted here. A snapshot has the data that
// was written to its files anyway, and not the data that was written to mapped memory. If the
// filesystem is mounted nowhere, writeOutFiles replays its intent log.
func writeOutFiles(dataset string) error {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.FSType != "zfs" || m.Source != dataset, false
	})
	if err != nil {
		return fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range mounts {
		number := unix.Mkdev(uint32(m.Major), uint32(m.Minor)) //nolint:gosec // as the kernel prints them
		if there, err := syncMount(m.Mountpoint, number); there || err != nil {
			return err
		}
	}
	if mountedIn(statistics, dataset) {
		return nil // it is mounted elsewhere
	}
	return replay(dataset)
}

// replay has ZFS replay the intent log of a dataset. Data that was written durably before a loss
// of power is in the log until the dataset is mounted next, and in no snapshot taken before that.
// replay opens the filesystem and mounts it nowhere, so no process sees it, and another process
// can mount it meanwhile.
func replay(dataset string) error {
	fd, err := unix.Fsopen("zfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("opening dataset %s: %w", dataset, err)
	}
	defer unix.Close(fd)
	if err := cmp.Or(unix.FsconfigSetString(fd, "source", dataset), unix.FsconfigCreate(fd)); err != nil {
		return fmt.Errorf("opening dataset %s: %w", dataset, err)
	}
	return nil
}
