package lvmtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// metadataBlock is the size, in bytes, of the blocks of a thin pool's metadata.
const metadataBlock = 4 << 10

// takeDisks makes a group of disks or adds them to one. LVM asks before it takes a disk
// that bears a signature. With --yes LVM would overwrite the disk without asking.
func (h *Host) takeDisks(operation string, a arguments, fail failure) ([]byte, error) {
	if _, yes := a.flags["--yes"]; yes {
		return fail("a disk with data on it would be overwritten")
	}
	name, nodes := a.operands[0], a.operands[1:]
	g := h.groups[name]
	switch {
	case h.Label == nil || len(nodes) == 0:
		return fail("there are no disks")
	case operation == "vgcreate" && g != nil:
		return fail("A volume group called %s already exists.", name)
	case operation == "vgextend" && (g == nil || g.Missing > 0):
		return fail("Cannot change VG %s", name)
	}
	var extents int64
	for _, node := range nodes {
		if h.inGroup(node) {
			return fail("Physical volume %s is already in a volume group", node)
		}
		size, err := h.Label(node)
		if err != nil {
			return fail("Aborted wiping of a signature on %s: %v", node, err)
		}
		extents += size/Unit - 1 // the first extent has no room: the data begins at 1 MiB
	}
	if g == nil {
		g = &Group{Name: name, Device: nodes[0], More: nodes[1:], Tags: a.tags, Volumes: map[string]*Volume{}}
		h.groups[name] = g
	} else {
		g.More = append(g.More, nodes...)
	}
	g.Extents += extents
	g.commit(h)
	return nil, nil
}

func (h *Host) inGroup(node string) bool {
	for _, g := range h.groups {
		if g.Device == node || slices.Contains(g.More, node) {
			return true
		}
	}
	return false
}

func (g *Group) devices() (rows []map[string]string) {
	for _, d := range append([]string{g.Device}, g.More...) {
		rows = append(rows, map[string]string{"pv_name": d})
	}
	return rows
}

// createPool makes a thin pool. LVM also keeps a spare as large as the pool's metadata.
func (h *Host) createPool(g *Group, a arguments, fail failure) ([]byte, error) {
	name := a.flags["--name"]
	data, err := extents(a.flags["--size"])
	metadata, metadataErr := extents(a.flags["--poolmetadatasize"])
	switch {
	case err != nil || metadataErr != nil:
		return fail("%v, %v", err, metadataErr)
	case g == nil || g.Missing > 0:
		return fail("Cannot change VG %s", a.operands[0])
	case a.flags["--zero"] != "y":
		return fail("new volumes would show what deleted ones held")
	case g.Volumes[name] != nil:
		return fail("Logical Volume %q already exists in volume group %q", name, g.Name)
	case data+2*metadata > g.free():
		return fail("Volume group %q has insufficient free space", g.Name)
	}
	g.Volumes[name] = &Volume{
		Extents: data, Tags: a.tags, Active: true,
		Thin: &ThinPool{Metadata: 2 * metadata, Blocks: metadata * Unit / metadataBlock},
	}
	g.Seqno += 2
	g.commit(h)
	return nil, nil
}

// extend extends a logical volume, or the metadata of a thin pool.
func (g *Group) extend(v *Volume, a arguments) error {
	if more, given := a.flags["--poolmetadatasize"]; given {
		return g.extendMetadata(v, more)
	}
	extents, err := extents(a.flags["--size"])
	if err != nil {
		return err
	}
	if extents <= v.Extents || v.Pool == "" && extents-v.Extents > g.free() {
		return fmt.Errorf("from %d to %d extents, %d are free", v.Extents, extents, g.free())
	}
	v.Extents = extents
	return nil
}

// extendMetadata extends a thin pool's metadata, and its spare.
func (g *Group) extendMetadata(v *Volume, by string) error {
	more, err := extents(strings.TrimPrefix(by, "+"))
	switch {
	case err != nil:
		return err
	case v.Thin == nil || !strings.HasPrefix(by, "+"):
		return errors.New("that is no thin pool, or no extension")
	case 2*more > g.free():
		return fmt.Errorf("insufficient free space for %d extents twice", more)
	}
	taken := int64(v.Thin.Filled) * v.Thin.Blocks
	v.Thin.Metadata += 2 * more
	v.Thin.Blocks += more * Unit / metadataBlock
	v.Thin.Filled = int(taken / v.Thin.Blocks)
	return nil
}
