package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// imageDir holds the volumes' files. The agent's container mounts it from its node.
const imageDir = "/etc/lvm/stand-in"

func imageFile(group, name string) string { return filepath.Join(imageDir, group, name) }

func newUUID() string {
	text := rand.Text() + rand.Text()
	return text[:6] + "-" + text[6:10] + "-" + text[10:14] + "-" + text[14:18] + "-" + text[18:22] + "-" + text[22:26] + "-" + text[26:32]
}

func createVolume(a arguments) error {
	name := a.flags["--name"]
	groupName, err := a.operand()
	if err != nil {
		return err
	}
	n, err := a.extents()
	if err != nil {
		return err
	}
	g, err := findGroup(groupName)
	switch {
	case err != nil:
		return err
	case name == "" || strings.ContainsAny(name, "/ "):
		return fmt.Errorf("%q is no name of a volume", name)
	case g.find(name) != nil:
		return fmt.Errorf("Logical Volume %q already exists in volume group %q", name, groupName) //nolint:staticcheck // LVM's words
	case n > g.free():
		return fmt.Errorf("Volume group %q has insufficient free space (%d extents): %d required", groupName, g.free(), n) //nolint:staticcheck // LVM's words
	}
	if err := resizeImage(groupName, name, n); err != nil {
		return err
	}
	g.Volumes = append(g.Volumes, &logical{Name: name, Extents: n, Tags: a.tags})
	if err := g.commit(); err != nil {
		return err
	}
	if a.flags["--activate"] == "n" {
		return nil
	}
	return activate(g, name)
}

func resizeImage(group, name string, extents int64) error {
	path := imageFile(group, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(extents*extentSize), f.Close())
}

// edit changes one volume of a group.
func edit(operand string, change func(*group, *logical) error) error {
	groupName, name, err := volume(operand)
	if err != nil {
		return err
	}
	g, err := findGroup(groupName)
	if err != nil {
		return err
	}
	v := g.find(name)
	if v == nil {
		return fmt.Errorf("Failed to find logical volume %q", operand) //nolint:staticcheck // LVM's words
	}
	return change(g, v)
}

func extendVolume(a arguments) error {
	operand, err := a.operand()
	if err != nil {
		return err
	}
	n, err := a.extents()
	if err != nil {
		return err
	}
	return edit(operand, func(g *group, v *logical) error {
		if n <= v.Extents || n-v.Extents > g.free() {
			return fmt.Errorf("Insufficient free space: %s has %d extents, %d are free, %d required", operand, v.Extents, g.free(), n) //nolint:staticcheck // LVM's words
		}
		v.Extents = n
		if err := resizeImage(g.Name, v.Name, n); err != nil {
			return err
		}
		return errors.Join(g.commit(), growLoop(g, v.Name))
	})
}

func removeVolume(a arguments) error {
	operand, err := a.operand()
	if err != nil {
		return err
	}
	if !strings.Contains(operand, "/") { // a whole group
		g, err := findGroup(operand)
		if err != nil {
			return err
		}
		return g.empty()
	}
	return edit(operand, (*group).remove)
}

// empty removes all volumes of a group.
func (g *group) empty() error {
	for _, v := range slices.Clone(g.Volumes) {
		if err := g.remove(v); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) remove(v *logical) error {
	if isOpen(g, v.Name) {
		return fmt.Errorf("Logical volume %s/%s in use", g.Name, v.Name) //nolint:staticcheck // LVM's words
	}
	if err := deactivate(g, v.Name); err != nil {
		return err
	}
	g.Volumes = slices.DeleteFunc(g.Volumes, func(other *logical) bool { return other == v })
	return errors.Join(g.commit(), os.Remove(imageFile(g.Name, v.Name)))
}

func changeVolume(a arguments) error {
	for _, operand := range a.operands {
		err := edit(operand, func(g *group, v *logical) error {
			if a.flags["--activate"] == "y" {
				return activate(g, v.Name) // writes no metadata
			}
			v.Tags = slices.DeleteFunc(v.Tags, func(tag string) bool { return slices.Contains(a.gone, tag) })
			v.Tags = append(v.Tags, a.tags...)
			return g.commit()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
