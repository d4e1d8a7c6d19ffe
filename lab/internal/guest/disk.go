package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"berth.dev/berth/lab/internal/guest/qmp"
)

// hotplugTimeout bounds a conversation with QEMU about a disk.
const hotplugTimeout = 30 * time.Second

// NewDisks returns count disks named disk1, disk2 and so on.
func NewDisks(count int, size int64) []Disk {
	var disks []Disk
	for i := range count {
		disks = append(disks, Disk{Name: fmt.Sprintf("disk%d", i+1), Size: size})
	}
	return disks
}

// AddDisk adds an empty disk with a free name, while the machine runs or is off, and
// returns it. The guest sees it some moments later.
func (m *Machine) AddDisk(ctx context.Context, size int64) (Disk, error) {
	disk := Disk{Name: m.freeDiskName(), Size: size}
	if err := disk.validate(); err != nil {
		return Disk{}, fmt.Errorf("adding a disk to %s: %w", m.Spec.Name, err)
	}
	if err := m.addDisk(ctx, disk); err != nil {
		return Disk{}, fmt.Errorf("adding a disk to %s: %w", m.Spec.Name, err)
	}
	return disk, nil
}

func (m *Machine) addDisk(ctx context.Context, disk Disk) error {
	if m.Power() == Paused {
		return errors.New("it is paused")
	}
	if disk.File == "" {
		if err := disk.create(m.dir); err != nil {
			return err
		}
	}
	if m.Power() == On {
		err := m.monitor(ctx, func(ctx context.Context, c *qmp.Client) error {
			if err := c.Execute(ctx, "blockdev-add", disk.backend(m.dir), nil); err != nil {
				return err
			}
			return c.Execute(ctx, "device_add", disk.device(m.Spec.Name), nil)
		})
		if err != nil {
			return err
		}
	}
	m.Spec.Disks = append(m.Spec.Disks, disk)
	return m.save()
}

// AttachDisk adds a disk whose file exists and may be attached to other machines at the
// same time. Nothing keeps their writes apart.
func (m *Machine) AttachDisk(ctx context.Context, disk Disk) error {
	err := disk.validate()
	taken := slices.ContainsFunc(m.Spec.Disks, func(d Disk) bool { return d.Name == disk.Name })
	switch {
	case err != nil:
	case disk.File == "":
		err = errors.New("it has no file")
	case taken:
		err = errors.New("the machine has a disk of that name")
	default:
		err = m.addDisk(ctx, disk)
	}
	if err != nil {
		return fmt.Errorf("attaching disk %s to %s: %w", disk.Name, m.Spec.Name, err)
	}
	return nil
}

// RemoveDisk pulls a disk out, in use or not, and deletes it. It leaves the file of a shared
// disk.
func (m *Machine) RemoveDisk(ctx context.Context, name string) error {
	if err := m.removeDisk(ctx, name); err != nil {
		return fmt.Errorf("removing disk %s from %s: %w", name, m.Spec.Name, err)
	}
	return nil
}

func (m *Machine) removeDisk(ctx context.Context, name string) error {
	index := slices.IndexFunc(m.Spec.Disks, func(d Disk) bool { return d.Name == name })
	if index < 0 {
		return errors.New("there is no such disk")
	}
	switch m.Power() {
	case Paused:
		return errors.New("it is paused")
	case On:
		if err := m.monitor(ctx, func(ctx context.Context, c *qmp.Client) error { return unplug(ctx, c, name) }); err != nil {
			return err
		}
	}
	disk := m.Spec.Disks[index]
	m.Spec.Disks = slices.Delete(slices.Clone(m.Spec.Disks), index, index+1)
	if err := m.save(); err != nil {
		return err
	}
	if disk.File != "" {
		return nil
	}
	if err := os.Remove(disk.path(m.dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// unplug is idempotent: an earlier try may have stopped half way.
func unplug(ctx context.Context, c *qmp.Client, disk string) error {
	device := deviceID(disk)
	err := c.Execute(ctx, "device_del", map[string]any{"id": device}, nil)
	refusal, refused := errors.AsType[*qmp.Error](err)
	switch {
	case refused && refusal.Class == "DeviceNotFound":
	case err != nil:
		return err
	default:
		if err := c.WaitDeleted(ctx, device); err != nil {
			return err
		}
	}
	return c.Execute(ctx, "blockdev-del", map[string]any{"node-name": disk}, nil)
}

// monitor runs f with a connection to QEMU.
func (m *Machine) monitor(ctx context.Context, f func(context.Context, *qmp.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, hotplugTimeout)
	defer cancel()
	socket, closeDir, err := m.socket()
	if err != nil {
		return err
	}
	defer func() { _ = closeDir() }()
	c, err := qmp.Dial(ctx, socket)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, c), c.Close())
}

// freeDiskName returns an unused name. It also skips names of disks whose creation failed
// half way: QEMU may still hold them.
func (m *directory) freeDiskName() string {
	for i := 1; ; i++ {
		name := fmt.Sprintf("disk%d", i)
		taken := slices.ContainsFunc(m.Spec.Disks, func(d Disk) bool { return d.Name == name })
		_, err := os.Stat(Disk{Name: name}.path(m.dir))
		if !taken && errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
}

// create makes the disk's sparse file, empty.
func (d Disk) create(dir string) error {
	f, err := os.OpenFile(d.path(dir), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating disk %s: %w", d.Name, err)
	}
	if err := errors.Join(f.Truncate(d.Size), f.Close()); err != nil {
		return fmt.Errorf("creating disk %s: %w", d.Name, err)
	}
	return nil
}
