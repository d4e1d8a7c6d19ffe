package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// numbersDir is where the kernel keeps block devices by number.
const numbersDir = "/sys/dev/block"

func entry(number uint32) string {
	return filepath.Join(numbersDir, fmt.Sprintf("%d:%d", loopMajor, number))
}

// present gives a loop device a device-mapper name in sysfs, as this mount namespace
// sees it.
func present(number uint32, name, uuid string) error {
	if err := overlay(); err != nil {
		return err
	}
	dir := entry(number)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "dm"), 0o755); err != nil {
		return err
	}
	kernels := fmt.Sprintf("/sys/devices/virtual/block/loop%d", number)
	attributes, err := os.ReadDir(kernels)
	if err != nil {
		return err
	}
	for _, a := range attributes {
		if err := os.Symlink(filepath.Join(kernels, a.Name()), filepath.Join(dir, a.Name())); err != nil {
			return err
		}
	}
	for file, value := range map[string]string{"name": name, "uuid": uuid} {
		if err := os.WriteFile(filepath.Join(dir, "dm", file), []byte(value+"\n"), 0o444); err != nil {
			return err
		}
	}
	return nil
}

// withdraw undoes present. A failure would only leave the name of a free device.
func withdraw(number uint32) { _ = os.RemoveAll(entry(number)) }

func isPresent(number uint32, name string) bool {
	got, err := os.ReadFile(filepath.Join(entry(number), "dm", "name"))
	return err == nil && strings.TrimSpace(string(got)) == name
}

// overlay mounts a writable directory with the same entries over the kernel's.
func overlay() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(numbersDir, &fs); err != nil {
		return err
	}
	if fs.Type == unix.TMPFS_MAGIC {
		return nil
	}
	entries, err := os.ReadDir(numbersDir)
	if err != nil {
		return err
	}
	links := map[string]string{}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(numbersDir, e.Name())); err == nil {
			links[e.Name()] = to
		}
	}
	if err := unix.Mount("stand-in", numbersDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755"); err != nil {
		return fmt.Errorf("laying a directory over %s: %w", numbersDir, err)
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(numbersDir, name)); err != nil {
			return err
		}
	}
	return nil
}
