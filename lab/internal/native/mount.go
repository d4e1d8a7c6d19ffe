package native

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"berth.dev/berth/lab/internal/guest/wire"
)

// mount is one mount of a node; its target is a path in the node.
type mount struct {
	source, target, kind string
	flags                uintptr
	options              string
}

func (m mount) do(root string) error {
	target := filepath.Join(root, m.target)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("mounting %s: %w", m.target, err)
	}
	if err := unix.Mount(m.source, target, m.kind, m.flags, m.options); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", m.source, m.target, err)
	}
	return nil
}

// bindFile shows a file of the machine at target.
func bindFile(source, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(target, nil, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("showing %s as %s: %w", source, target, err)
	}
	return nil
}

// showPrograms mounts the directories of the programs, and links to the programs there.
// A mount of a single program would not do: runc finds itself by its
// directory beneath all mounts, and could not start containers.
func showPrograms(root string, programs map[string]string) error {
	shown := map[string]string{}
	for _, place := range slices.Sorted(maps.Keys(programs)) {
		dir, name := filepath.Split(programs[place])
		if shown[dir] == "" {
			shown[dir] = filepath.Join(wire.ToolsDir, "from", strconv.Itoa(len(shown)))
			if err := (mount{dir, shown[dir], "", unix.MS_BIND, ""}).do(root); err != nil {
				return err
			}
			if err := (mount{"", shown[dir], "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""}).do(root); err != nil {
				return err
			}
		}
		link := filepath.Join(root, wire.ToolsDir, place)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) { // of an earlier start
			return err
		}
		if err := os.Symlink(filepath.Join(shown[dir], name), link); err != nil {
			return err
		}
	}
	return nil
}

// device is a character device that a node has.
type device struct {
	name         string
	major, minor uint32
	mode         uint32
}

var devices = []device{
	{"null", 1, 3, 0o666}, {"zero", 1, 5, 0o666}, {"full", 1, 7, 0o666}, {"random", 1, 8, 0o666}, {"urandom", 1, 9, 0o666},
	{"kmsg", 1, 11, 0o600}, {"tty", 5, 0, 0o666}, {"fuse", 10, 229, 0o666}, {"loop-control", 10, 237, 0o600},
}

var deviceLinks = map[string]string{
	"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
}

// loopMajor is the kernel's number of loop devices.
const loopMajor = 7

// makeDevices fills a node's /dev. It leaves out the machine's disks, so that
// no program in the node takes them for the node's.
func makeDevices(dir string, loops []int) error {
	for _, d := range devices {
		if err := makeNode(filepath.Join(dir, d.name), unix.S_IFCHR|d.mode, unix.Mkdev(d.major, d.minor)); err != nil {
			return err
		}
	}
	for _, number := range loops {
		path := filepath.Join(dir, filepath.Base(loopPath(number)))
		if err := makeNode(path, unix.S_IFBLK|0o660, unix.Mkdev(loopMajor, uint32(number))); err != nil { //nolint:gosec // small
			return err
		}
	}
	for name, to := range deviceLinks {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func makeNode(path string, mode uint32, number uint64) error {
	if err := unix.Mknod(path, mode, int(number)); err != nil { //nolint:gosec // as the kernel takes it
		return fmt.Errorf("making device %s: %w", filepath.Base(path), err)
	}
	return os.Chmod(path, os.FileMode(mode&0o777)) // the umask does not decide
}
