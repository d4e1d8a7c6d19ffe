package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// Remnant is the logical volume of a deleted volume. It takes room in the group until it is wiped
// and removed. It is no volume any more, and Berth never makes it one again.
type Remnant struct {
	size   int64
	How    provision.Wipe
	inline provision.Inline
	// Wiped is how many bytes from its beginning need not be wiped again, by the record.
	Wiped int64
	// doubted says that the disk ignored a write since then. The record may be there still, if it
	// could not be taken back.
	doubted bool
	// strange is a layout that others gave it and with which wiping may not reach all of its
	// storage: zeros in a cache cover nothing once the cache is gone.
	strange string
	// Suspended says that a command died while it changed the device, and left it suspended. A
	// process that writes to it waits until it is resumed.
	Suspended bool
	Tries
}

// Lasting returns how many bytes from its beginning need not be wiped again.
func (r *Remnant) Lasting() int64 {
	if r.doubted {
		return 0
	}
	return r.Wiped
}

// Doubt notes that the disk of a remnant ignored a write, if the group is known and has the remnant.
// It may have ignored earlier writes, too.
func (g *Facts) Doubt(id string) {
	if g != nil && g.Wiping[id] != nil {
		g.Wiping[id].doubted = true
	}
}

// strange returns a layout, but an empty string if a write to such a logical volume reaches all
// of its storage.
func strange(layout string) string {
	for word := range strings.SplitSeq(layout, ",") {
		if word != "linear" && word != "striped" && !strings.HasPrefix(word, "raid") {
			return layout
		}
	}
	return ""
}

// bury turns a volume or a snapshot into a remnant.
func (h *holdings) bury(id string) {
	c := h.Find(id)
	if c == nil {
		return
	}
	r := &Remnant{size: c.size, How: c.Wipe, Suspended: c.Suspended}
	if v := h.Volumes[id]; v != nil {
		r.inline = v.inline
	}
	h.Wiping[id] = r
	h.discard(id)
}

// discard forgets a volume or a snapshot that is gone. Its cow may be there still.
func (h *holdings) discard(id string) {
	delete(h.Volumes, id)
	delete(h.Snapshots, id)
	h.settled(id)
}

// remnants returns the remnants of the group as other packages see them.
func (g *Facts) remnants() (left []provision.Volume) {
	for _, id := range slices.Sorted(maps.Keys(g.Wiping)) {
		r := g.Wiping[id]
		v := provision.Volume{ID: id, Pool: g.Ref(""), Size: r.size, Content: g.content(id), Inline: r.inline}
		switch {
		case r.Suspended:
			v.Problem = "its device is suspended: resume it (lvchange --refresh " + g.Name + "/" + id + ")"
		case r.failed != nil:
			v.Problem = provision.Problem(r.failed)
		}
		left = append(left, v)
	}
	return left
}

// Wipeable says whether a remnant is there, or why it can be neither wiped nor removed.
func Wipeable(g *Facts, id string) (there bool, err error) {
	if g == nil || g.Wiping[id] == nil {
		return false, nil
	}
	if g.Missing {
		return true, fmt.Errorf("%w: volume group %s is missing", provision.ErrPoolMissing, g.Name)
	}
	if other := g.dependents[id]; other != "" {
		return true, fmt.Errorf("%w: logical volume %s/%s is not Berth's and would be removed with it: remove it first", provision.ErrInUse, g.Name, other)
	}
	if strange := g.Wiping[id].strange; strange != "" {
		return true, fmt.Errorf("%w: others made it %s, and wiping need not reach all that stores it: make it linear again (lvconvert), or zero and remove it by hand",
			provision.ErrUnavailable, strange)
	}
	return true, nil
}

// Remains returns the tries of the remnants that can be wiped. A suspended one has to be mended
// first.
func (h *holdings) Remains() map[string]*Tries {
	due := map[string]*Tries{}
	for id, r := range h.Wiping {
		if !r.Suspended {
			due[id] = &r.Tries
		}
	}
	return due
}
