package lvmtest

import (
	"errors"
	"maps"
	"strings"
)

// A copy-on-write snapshot shows the content that its origin had when it was taken. Data that
// is overwritten in the origin later is saved on the snapshot's own extents, and stays on them.

// createCow makes a copy-on-write snapshot. LVM writes the metadata twice: it makes a plain
// logical volume first.
func (h *Host) createCow(a arguments, fail failure) ([]byte, error) {
	g, origin := h.device("/dev/" + a.operands[0])
	name := a.flags["--name"]
	extents, err := extents(a.flags["--size"])
	switch {
	case err != nil:
		return fail("%v", err)
	case h.Targets["snapshot"] == Missing:
		return fail("snapshot: Required device-mapper target(s) not detected in your kernel.")
	case origin == nil:
		return fail("Failed to find logical volume %q", a.operands[0])
	case origin.Pool != "" || origin.Origin != "":
		return fail("Snapshots of %s are not played here.", a.operands[0])
	case g.Missing > 0:
		return fail("Cannot change VG %s while PVs are missing.", g.Name)
	case g.Volumes[name] != nil:
		return fail("Logical Volume %q already exists in volume group %q", name, g.Name)
	case extents > g.free():
		return fail("Volume group %q has insufficient free space", g.Name)
	}
	v := &Volume{Extents: extents, Tags: a.tags, Active: origin.Active, Origin: strings.TrimPrefix(a.operands[0], g.Name+"/")}
	g.Volumes[name] = v
	g.place(v)
	v.own = map[int64]byte{}
	g.each(origin, 0, origin.Extents*Unit, func(content map[int64]byte, at, offset int64) { v.own[offset] = content[at] })
	g.Seqno++
	g.commit(h)
	return nil, nil
}

// split makes a copy-on-write snapshot a plain logical volume.
func (g *Group) split(v *Volume) error {
	if v.Origin == "" || v.Pool != "" {
		return errors.New("it is no snapshot that could be split from its origin")
	}
	if v.open() {
		return errors.New("it is in use")
	}
	v.Origin, v.own = "", nil
	return nil
}

// save saves a byte of a volume in its copy-on-write snapshots, before it is overwritten.
func (g *Group) save(v *Volume, offset int64) {
	if v.Pool != "" || v.Origin != "" {
		return
	}
	b, there := g.content[g.place(v)[offset/Unit]*Unit+offset%Unit]
	if !there {
		return
	}
	for _, cow := range g.Volumes {
		if cow.Pool == "" && cow.Origin != "" && g.Volumes[cow.Origin] == v {
			g.content[g.place(cow)[offset/Unit]*Unit+offset%Unit] = b
		}
	}
}

// shown is the content of a snapshot or of a thin volume; nil for any other volume.
func (v *Volume) shown() map[int64]byte {
	switch {
	case v.Pool != "" && v.own == nil:
		v.own = map[int64]byte{}
	case v.Pool == "" && v.Origin == "":
		return nil
	}
	return v.own
}

// size of a volume's device in bytes: a copy-on-write snapshot is as large as its origin.
func (g *Group) size(v *Volume) int64 {
	if v.Pool == "" && v.Origin != "" && g.Volumes[v.Origin] != nil {
		return g.Volumes[v.Origin].Extents * Unit
	}
	return v.Extents * Unit
}

// Presence says whether the kernel has a type of target.
type Presence int

// A type of target is Present by default. One that is Unloaded is loaded when the kernel is asked
// for it: LVM, in a container, cannot load it.
const (
	Present Presence = iota
	Missing
	Unloaded
)

// Provides implements lvm.Devices.
func (h *Host) Provides(target string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Targets[target] == Unloaded {
		h.Targets[target] = Present
	}
	return h.Targets[target] == Present, nil
}

// lacks is LVM's error for a target that the kernel has not loaded; empty if it has.
func (h *Host) lacks(target string) string {
	if h.Targets[target] == Present {
		return ""
	}
	return target + ": Required device-mapper target(s) not detected in your kernel."
}

// PutForeignCow makes a copy-on-write snapshot that bears no tag.
func (h *Host) PutForeignCow(group, name, origin string, size int64) {
	h.Edit(func(groups map[string]*Group) string {
		g := groups[group]
		g.Volumes[name] = &Volume{Extents: (size + Unit - 1) / Unit, Origin: origin, own: maps.Clone(g.content)}
		g.Seqno += 2
		return g.Device
	})
}
