package kernel

import (
	"os"
	"path/filepath"
	"slices"
)

const (
	idDir = "/dev/disk/by-id"
	// udevControl is there while udev runs.
	udevControl = "/run/udev/control"
)

// Udev implements zfs.Labels.
func (*Devices) Udev() bool {
	_, err := os.Lstat(udevControl)
	return err == nil
}

// Alias implements zfs.Labels.
func (*Devices) Alias(node string) string { return aliasIn(idDir, node) }

// aliasIn takes the first of several links by their names: those with model and serial
// number come before those with bare numbers.
func aliasIn(dir, node string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return node // udev makes the directory with the first link
	}
	var links []string
	for _, e := range entries {
		link := filepath.Join(dir, e.Name())
		if target, err := filepath.EvalSymlinks(link); err == nil && target == node {
			links = append(links, link)
		}
	}
	if len(links) == 0 {
		return node
	}
	return slices.Min(links)
}
