package group

import (
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
)

// area is the smallest of the metadata areas on a group's physical volumes, in which LVM keeps
// the text that describes the group. An area holds two texts, the old and the new one, and cannot
// grow.
type area struct {
	// Size of the area, and by how much the text can become longer, in bytes. The size is 0
	// if LVM does not tell.
	Size number `json:"vg_mda_size"`
	Free number `json:"vg_mda_free"`
}

const (
	// ampleArea is the size of the areas of groups that Berth makes, for some 15000 volumes.
	// LVM's default of 1 MiB has room for less than 1000.
	ampleArea = 16 << 20
	// keptArea is kept free for later changes of the volumes that exist: to be formatted, to
	// grow, to be deleted. A small area keeps only one part in keptFraction.
	keptArea     = 32 << 10
	keptFraction = 16
	// changeArea is about the most that one change adds to the text: a volume with its tags.
	changeArea = 1 << 10
)

// Spend subtracts the bytes that an own change may have taken, until LVM reports the area again.
func (a *area) Spend() { a.Free = max(a.Free-changeArea, 0) }

// Crowded is empty, or says why nothing new may be made in the group.
func (a area) Crowded() string {
	if a.Free >= min(keptArea, a.Size/keptFraction) {
		return ""
	}
	return fmt.Sprintf("the area of %s in which LVM keeps the metadata of the volume group is full but for %s, and cannot grow: delete volumes, or use a volume group with a larger one (vgcreate --metadatasize 16m)",
		quantity.Bytes(int64(a.Size)), quantity.Bytes(int64(a.Free)))
}

// admitsRecord returns ErrNoSpace, which sends a volume elsewhere, if LVM has no room to note
// another one.
func (g *Facts) admitsRecord() error {
	if why := g.Area.Crowded(); why != "" {
		return fmt.Errorf("%w: volume group %s: %s", provision.ErrNoSpace, g.Name, why)
	}
	return nil
}
