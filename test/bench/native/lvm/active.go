package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mapped returns LVM's name of a volume for the device mapper.
func mapped(g *group, name string) string {
	double := func(s string) string { return strings.ReplaceAll(s, "-", "--") }
	return double(g.Name) + "-" + double(name)
}

func nodePath(g *group, name string) string { return filepath.Join("/dev/mapper", mapped(g, name)) }

func linkPath(g *group, name string) string { return filepath.Join("/dev", g.Name, name) }

// activate gives a volume its loop device, its device nodes and its name in sysfs,
// unless it has them.
func activate(g *group, name string) error {
	node := nodePath(g, name)
	if err := os.MkdirAll(filepath.Dir(node), 0o755); err != nil {
		return err
	}
	number, bound := boundLoop(node, imageFile(g.Name, name))
	if !bound {
		if err := unlink(node); err != nil {
			return err
		}
		var err error
		if number, err = attach(node, imageFile(g.Name, name)); err != nil {
			return fmt.Errorf("activating %s/%s: %w", g.Name, name, err)
		}
	}
	link := linkPath(g, name)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if err := unlink(link); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join("..", "mapper", mapped(g, name)), link); err != nil {
		return err
	}
	return present(number, mapped(g, name), "LVM-"+strings.ReplaceAll(g.UUID, "-", "")+name)
}

// deactivate undoes activate.
func deactivate(g *group, name string) error {
	node := nodePath(g, name)
	if number, bound := boundLoop(node, imageFile(g.Name, name)); bound {
		if err := detach(node); err != nil {
			return fmt.Errorf("deactivating %s/%s: %w", g.Name, name, err)
		}
		withdraw(number)
	}
	return errors.Join(unlink(linkPath(g, name)), unlink(node))
}

// isActive says whether a volume can be used in this mount namespace.
func isActive(g *group, name string) bool {
	number, bound := boundLoop(nodePath(g, name), imageFile(g.Name, name))
	return bound && isPresent(number, mapped(g, name))
}

// isOpen says whether a volume is mounted, or opened by a process in this process
// namespace.
func isOpen(g *group, name string) bool {
	node := nodePath(g, name)
	fd, err := unix.Open(node, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EBUSY) {
		return true
	}
	if err != nil {
		return false
	}
	unix.Close(fd)
	var wanted unix.Stat_t
	if unix.Stat(node, &wanted) != nil {
		return false
	}
	opened, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range opened {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK && st.Rdev == wanted.Rdev {
			return true
		}
	}
	return false
}

func unlink(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
