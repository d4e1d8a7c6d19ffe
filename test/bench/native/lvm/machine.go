package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// imageDir holds the volumes' files. The agent's container mounts it from its node.
const imageDir = "/etc/lvm/stand-in"

// machine is the simulated LVM between reading the groups from the loop devices and writing them
// there.
type machine struct {
	host *lvmtest.Host
	// volumes that were read, and the sequence number of each group then.
	volumes []volume
	seqnos  map[string]uint64
}

// volume is a logical volume by its names.
type volume struct{ group, name string }

func (v volume) image() string { return filepath.Join(imageDir, v.group, v.name) }

// mapped returns LVM's name of the volume for the device mapper.
func (v volume) mapped() string { return group.MappingName(v.group, v.name) }

func (v volume) node() string { return filepath.Join("/dev/mapper", v.mapped()) }

func (v volume) link() string { return filepath.Join("/dev", v.group, v.name) }

// load reads the groups on the loop devices in /dev, and which of their volumes are active and open.
func load() (*machine, error) {
	m := &machine{host: lvmtest.NewHost(nil), seqnos: map[string]uint64{}}
	m.host.Label = label
	paths, err := filepath.Glob("/dev/loop[0-9]*")
	if err != nil {
		return nil, err
	}
	opened := openDevices()
	for _, path := range paths {
		g, err := groupOn(path)
		if errors.Is(err, errNoMetadata) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.seqnos[g.Name] = g.Seqno
		for name, lv := range g.Volumes {
			v := volume{g.Name, name}
			m.volumes = append(m.volumes, v)
			lv.Active, lv.Open = v.isActive(), v.isOpen(opened)
		}
		m.host.Edit(func(groups map[string]*lvmtest.Group) string {
			groups[g.Name] = g
			return path
		})
	}
	return m, nil
}

// groupOn returns the group on a device.
func groupOn(path string) (*lvmtest.Group, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errNoMetadata
	}
	defer f.Close()
	g, err := readGroup(f)
	if err != nil {
		return nil, err
	}
	g.Device = path
	return g, nil
}

// label makes a physical volume of a device and returns the device's size.
func label(path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	return size, writeLabel(f, size)
}

// store changes the machine as the command changed the groups. Other processes notice a new version
// of a group when store closes the group's device.
func (m *machine) store() (err error) {
	left := map[volume]bool{}
	m.host.Edit(func(groups map[string]*lvmtest.Group) string {
		for _, g := range groups {
			for name, lv := range g.Volumes {
				left[volume{g.Name, name}] = true
				err = errors.Join(err, volume{g.Name, name}.resize(lv.Extents*lvmtest.Unit))
			}
			if g.Seqno != m.seqnos[g.Name] {
				err = errors.Join(err, commit(g))
			}
		}
		return ""
	})
	for v := range left {
		if uuid, inactive := m.host.UUID(v.mapped()); inactive == nil {
			err = errors.Join(err, v.activate(uuid))
		}
	}
	for _, v := range m.volumes {
		if !left[v] {
			err = errors.Join(err, v.deactivate(), os.Remove(v.image()))
		}
	}
	return err
}

// commit writes a group as its next version.
func commit(g *lvmtest.Group) error {
	f, err := os.OpenFile(g.Device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(writeGroup(f, g), f.Sync(), f.Close())
}

// resize makes the volume's file, and the device over it, so many bytes large.
func (v volume) resize(bytes int64) error {
	if st, err := os.Stat(v.image()); err == nil && st.Size() == bytes {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(v.image()), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(v.image(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(bytes), f.Close(), v.grow())
}
