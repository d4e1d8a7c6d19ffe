package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"berth.dev/berth/lab/internal/guest"
)

// ShareDisk gives each of the nodes one and the same disk: the shared disk of that name, or
// a new, empty one if the name is empty. Nothing keeps the nodes' writes apart. The disk has
// no reservations: a SAN has.
func (c *Cluster) ShareDisk(ctx context.Context, nodes []string, name string, size int64) (guest.Disk, error) {
	var disk guest.Disk
	err := c.change(func() error {
		machines, err := c.machines(nodes)
		if err != nil {
			return err
		}
		if disk, err = c.sharedDisk(name, size); err != nil {
			return err
		}
		for _, m := range machines {
			if hasDisk(m, disk.Name) {
				continue
			}
			if err := m.AttachDisk(ctx, disk); err != nil {
				return errors.Join(err, c.deleteUnshared(disk))
			}
		}
		return nil
	})
	return disk, err
}

func (c *Cluster) machines(nodes []string) ([]Machine, error) {
	var all []Machine
	for _, n := range nodes {
		m, err := c.Machine(n)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// sharedDisk returns the shared disk of a name, or makes one.
func (c *Cluster) sharedDisk(name string, size int64) (guest.Disk, error) {
	if name == "" {
		return c.newSharedDisk(size)
	}
	known, err := filepath.Glob(c.paths.shared("*"))
	if err != nil {
		return guest.Disk{}, err
	}
	file := c.paths.shared(name)
	if !slices.Contains(known, file) {
		return guest.Disk{}, fmt.Errorf("there is no shared disk %q: leave out --disk to make one", name)
	}
	info, err := os.Stat(file)
	if err != nil {
		return guest.Disk{}, fmt.Errorf("finding shared disk %s: %w", name, err)
	}
	return guest.Disk{Name: name, Size: info.Size(), File: file}, nil
}

func (c *Cluster) newSharedDisk(size int64) (guest.Disk, error) {
	if size < 1<<20 || size%512 != 0 {
		return guest.Disk{}, fmt.Errorf("disk of %d bytes: use at least 1M, in whole sectors of 512 bytes", size)
	}
	for i := 1; ; i++ {
		disk := guest.Disk{Name: fmt.Sprintf("shared%d", i), Size: size}
		disk.File = c.paths.shared(disk.Name)
		if err := os.MkdirAll(filepath.Dir(disk.File), 0o700); err != nil {
			return guest.Disk{}, fmt.Errorf("making a shared disk: %w", err)
		}
		f, err := os.OpenFile(disk.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = errors.Join(f.Truncate(size), f.Close())
		}
		if err != nil {
			return guest.Disk{}, fmt.Errorf("making a shared disk: %w", err)
		}
		return disk, nil
	}
}

// deleteUnshared deletes the file of a disk that no node has any more.
func (c *Cluster) deleteUnshared(disk guest.Disk) error {
	for _, name := range c.Nodes() {
		if m, err := c.open(name); err == nil && hasDisk(m, disk.Name) {
			return nil
		}
	}
	if err := os.Remove(disk.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting shared disk %s: %w", disk.Name, err)
	}
	return nil
}

func hasDisk(m Machine, name string) bool {
	return slices.ContainsFunc(m.Disks(), func(d guest.Disk) bool { return d.Name == name })
}
