package lvm

import (
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
)

// area is the smallest of the areas in which LVM keeps a text that tells all of a group, on
// its physical volumes. It takes two of them, the old and the new one, and cannot grow.
type area struct {
	// Size of the area, and by how much the text can become longer, in bytes. The size is 0
	// if LVM does not tell.
	Size number `json:"vg_mda_size"`
	Free number `json:"vg_mda_free"`
}

const (
	// ampleArea is that of groups that Berth makes, for some 15000 volumes. LVM's own, of a
	// MiB, has room for less than 1000.
	ampleArea = 16 << 20
	// keptArea of an area is for what becomes of the volumes that are there: to be formatted,
	// to grow, to be deleted. A small area keeps a smaller part.
	keptArea     = 32 << 10
	keptFraction = 16
	// changeArea is about the most by which one change makes the text longer: a volume with its
	// tags.
	changeArea = 1 << 10
)

// spend reckons with what an own change may have taken, until LVM tells.
func (a *area) spend() { a.Free = max(a.Free-changeArea, 0) }

// crowded is empty, or says why nothing new may be made in the group.
func (a area) crowded() string {
	if a.Free >= min(keptArea, a.Size/keptFraction) {
		return ""
	}
	return fmt.Sprintf("the area of %s in which LVM keeps what it knows of the volume group is full but for %s, and cannot grow: delete volumes, or use a volume group with a larger one (vgcreate --metadatasize 16m)",
		quantity.Bytes(int64(a.Size)), quantity.Bytes(int64(a.Free)))
}

// admitsRecord returns ErrNoSpace, which sends a volume elsewhere, if LVM has no room to note
// another one.
func (g *group) admitsRecord() error {
	if why := g.area.crowded(); why != "" {
		return fmt.Errorf("%w: volume group %s: %s", provision.ErrNoSpace, g.name, why)
	}
	return nil
}
