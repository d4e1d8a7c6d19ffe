package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const extentSize = 4 << 20

// group is a volume group, as its metadata holds it.
type group struct {
	Name    string     `json:"name"`
	UUID    string     `json:"uuid"`
	Seqno   uint64     `json:"seqno"`
	Extents int64      `json:"extents"`
	Volumes []*logical `json:"volumes"`

	device string // its physical volume
}

// logical is a logical volume.
type logical struct {
	Name    string   `json:"name"`
	Extents int64    `json:"extents"`
	Tags    []string `json:"tags"`
}

func (g *group) free() int64 {
	free := g.Extents
	for _, v := range g.Volumes {
		free -= v.Extents
	}
	return free
}

func (g *group) find(name string) *logical {
	i := slices.IndexFunc(g.Volumes, func(v *logical) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return g.Volumes[i]
}

// groups returns the groups on the loop devices in /dev.
func groups() ([]*group, error) {
	paths, err := filepath.Glob("/dev/loop[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []*group
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		g, err := readGroup(f)
		f.Close()
		if errors.Is(err, errNoMetadata) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		g.device = path
		all = append(all, g)
	}
	return all, nil
}

func findGroup(name string) (*group, error) {
	all, err := groups()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(g *group) bool { return g.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("Volume group %q not found", name) //nolint:staticcheck // LVM's words
	}
	return all[i], nil
}

// commit writes the group as its next version. Other processes notice it when commit
// closes the device.
func (g *group) commit() error {
	g.Seqno++
	f, err := os.OpenFile(g.device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(writeGroup(f, g), f.Sync(), f.Close())
}

func createGroup(a arguments) error {
	if len(a.operands) != 2 {
		return fmt.Errorf("%d operands, want the group's name and its device", len(a.operands))
	}
	name, device := a.operands[0], a.operands[1]
	if _, err := findGroup(name); err == nil {
		return fmt.Errorf("A volume group called %s already exists", name) //nolint:staticcheck // LVM's words
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	g := &group{Name: name, UUID: newUUID(), Extents: (size - dataAt) / extentSize, device: device}
	if g.Extents < 1 {
		return fmt.Errorf("%s is too small", device)
	}
	if err := writeLabel(f, size); err != nil {
		return err
	}
	return g.commit()
}

// removeGroup removes a group with all its volumes.
func removeGroup(a arguments) error {
	name, err := a.operand()
	if err != nil {
		return err
	}
	g, err := findGroup(name)
	if err != nil {
		return err
	}
	if err := g.empty(); err != nil {
		return err
	}
	return wipe(g.device)
}

// wipeDevice removes the label from a device, if there is one.
func wipeDevice(a arguments) error {
	device, err := a.operand()
	if err != nil {
		return err
	}
	return wipe(device)
}

func wipe(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, areaAt+sector), 0)
	return errors.Join(err, f.Sync(), f.Close())
}
