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

// SharedDisks are the disks of a cluster that several nodes may have at once. Each is a file that
// belongs to no node: the last node that loses it deletes it.
type SharedDisks struct{ cluster *Cluster }

// Share gives each of the nodes one and the same disk: the shared disk of that name, or
// a new, empty one if the name is empty. Nothing keeps the nodes' writes apart. The disk has
// no reservations: a SAN has.
func (d SharedDisks) Share(ctx context.Context, nodes []string, name string, size int64) (guest.Disk, error) {
	var disk guest.Disk
	err := d.cluster.change(func() error {
		machines, err := d.machines(nodes)
		if err != nil {
			return err
		}
		if disk, err = d.open(name, size); err != nil {
			return err
		}
		for _, m := range machines {
			if hasDisk(m, disk.Name) {
				continue
			}
			if err := m.AttachDisk(ctx, disk); err != nil {
				return errors.Join(err, d.deleteUnshared(disk))
			}
		}
		return nil
	})
	return disk, err
}

func (d SharedDisks) machines(nodes []string) ([]Machine, error) {
	var all []Machine
	for _, n := range nodes {
		m, err := d.cluster.Node(n).Machine()
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// open returns the shared disk of a name, or makes one.
func (d SharedDisks) open(name string, size int64) (guest.Disk, error) {
	if name == "" {
		return d.create(size)
	}
	known, err := filepath.Glob(d.cluster.paths.shared("*"))
	if err != nil {
		return guest.Disk{}, err
	}
	file := d.cluster.paths.shared(name)
	if !slices.Contains(known, file) {
		return guest.Disk{}, fmt.Errorf("there is no shared disk %q: leave out --disk to make one", name)
	}
	info, err := os.Stat(file)
	if err != nil {
		return guest.Disk{}, fmt.Errorf("finding shared disk %s: %w", name, err)
	}
	return guest.Disk{Name: name, Size: info.Size(), File: file}, nil
}

func (d SharedDisks) create(size int64) (guest.Disk, error) {
	if size < 1<<20 || size%512 != 0 {
		return guest.Disk{}, fmt.Errorf("disk of %d bytes: use at least 1M, in whole sectors of 512 bytes", size)
	}
	for i := 1; ; i++ {
		disk := guest.Disk{Name: fmt.Sprintf("shared%d", i), Size: size}
		disk.File = d.cluster.paths.shared(disk.Name)
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
func (d SharedDisks) deleteUnshared(disk guest.Disk) error {
	for _, n := range d.cluster.Nodes() {
		if m, err := n.open(); err == nil && hasDisk(m, disk.Name) {
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
