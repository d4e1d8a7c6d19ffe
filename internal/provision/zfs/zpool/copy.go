package zpool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// A copy of a replicated volume has a filesystem of its own in the pool, berth-copies/ID. In it are the
// copy's record and its strands: the datasets that streams were received into, and heads that do not
// count any more. Whatever is in there is Berth's by its place.
//
// A point is the snapshot berth-point-N of the head or of a strand. N is the number of its place in the
// record, and ZFS may move it from one dataset to another (zfs promote).

const (
	recordName  = "record"
	pointPrefix = "berth-point-"
	propVolMode = "volmode"
	// The record of a copy is in two properties, since ZFS has at most 8 KiB in each. One command sets
	// both at once.
	propCopyFirst = "berth.dev:copy.1"
	propCopyRest  = "berth.dev:copy.2"
	longestPart   = 8000
)

// Copy is what a zpool holds of a copy of a replicated volume.
type Copy struct {
	Parent, ID string
	replica.Record
	// Damage says why the record cannot be read.
	Damage error
	// container says that the filesystem of the copy is there, and noted that the record has a
	// dataset.
	container, noted bool
	// quota of the filesystem of the copy; 0 for none.
	quota int64
	// kept is how many raw bytes points take, with those of streams that were received half.
	kept int64
}

// CopyFacts are the facts about the copies in a zpool.
type CopyFacts struct{ *Facts }

// CopiesIn returns the facts about the copies in a zpool.
func CopiesIn(z *Facts) CopyFacts { return CopyFacts{z} }

// CopyPlanner plans changes of copies.
type CopyPlanner struct{ Planner }

// CopyTool makes the commands that only copies need.
type CopyTool struct{ Tool }

// CopyName returns the name of the filesystem of a copy.
func CopyName(parent, id string) string { return parent + "/" + copiesArea + "/" + id }

// StrandName returns the name of a strand of a copy.
func (c *Copy) StrandName(number uint64) string {
	return CopyName(c.Parent, c.ID) + "/" + strconv.FormatUint(number, 10)
}

// PointName returns the name of the snapshot of a place, without that of its dataset.
func PointName(place uint64) string { return pointPrefix + strconv.FormatUint(place, 10) }

// placeOf returns the place of a snapshot; 0 if it is none of a copy's points.
func placeOf(snapshot string) uint64 {
	text, ok := strings.CutPrefix(snapshot, pointPrefix)
	if number := parseNumber(text); ok {
		return number
	}
	return 0
}

// parseNumber reads a number as Berth writes one; 0 for any other text.
func parseNumber(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0
	}
	return n
}

// copyPart splits the name of the filesystem of a copy, or of a dataset in it.
func copyPart(dataset string) (parent, id, part string, ok bool) {
	above, last := cutLast(dataset)
	if pool, area := cutLast(above); area == copiesArea && pool != "" {
		return pool, last, "", true
	}
	middle, id := cutLast(above)
	pool, area := cutLast(middle)
	return pool, id, last, area == copiesArea && pool != ""
}

// takeCopy takes a dataset in that is part of a copy.
func (z CopyFacts) takeCopy(r Row) bool {
	parent, id, part, ok := copyPart(r.name)
	if _, pool := z.Parents[parent]; !ok || !pool || provision.CheckID(id) != nil {
		return false
	}
	c := z.copyAt(parent, id)
	number := parseNumber(part)
	switch {
	case part == "" && r.kind == kindFilesystem:
		c.container, c.quota = true, r.quota
	case part == recordName && r.kind == kindFilesystem:
		c.noted = true
		c.Record, c.Damage = readCopy(r)
	case number > 0:
		size := r.volsize
		if r.kind == kindFilesystem {
			size = datasetSize(r)
		}
		d := newDataset(r, parent, copies, id, size)
		d.strand, d.token, d.wasHead = number, set(r.token), r.volume == id
		z.Datasets[r.name] = d
	default:
		return false
	}
	return true
}

// copyAt returns the copy of an id in a pool, which it notes.
func (z CopyFacts) copyAt(parent, id string) *Copy {
	name := CopyName(parent, id)
	if z.Copies[name] == nil {
		z.Copies[name] = &Copy{Parent: parent, ID: id}
	}
	return z.Copies[name]
}

// copyOf returns the copy that a dataset is of; an empty one for a volume that is none.
func (z CopyFacts) copyOf(d *Dataset) *Copy {
	if c := z.Copies[CopyName(d.Parent, d.ID)]; c != nil {
		return c
	}
	return &Copy{Parent: d.Parent, ID: d.ID}
}

// lost says that a copy has points, or parts of them, and no record that could tell which of them count.
func (z CopyFacts) lost(c *Copy) bool {
	if c.Exists || c.Damage != nil {
		return false
	}
	for _, d := range z.parts(c) {
		if d.area != trash && (d.strand > 0 || d.pointed()) {
			return true
		}
	}
	return false
}

// appoint finds the strands that stand for volumes: of those that were heads the last one, if there is
// no head. A head that a loss of power left half made is none.
func (z CopyFacts) appoint() {
	for _, c := range z.Copies {
		if z.lost(c) {
			c.Damage = fmt.Errorf("%w: the record of the copy is missing, and its points are there", provision.ErrUnavailable)
		}
		last := uint64(0)
		head := z.Datasets[LiveName(c.Parent, c.ID)]
		if (head == nil || head.unfinished) && len(z.ending(c.Parent, c.ID)) == 0 {
			for _, d := range z.parts(c) {
				if d.wasHead {
					last = max(last, d.strand)
				}
			}
		}
		for _, d := range z.parts(c) {
			d.stands = d.wasHead && d.strand == last
		}
	}
}

// problem says why the volume must not be mounted.
func (c *Copy) problem() string {
	if c.Damage != nil {
		return provision.Problem(c.Damage)
	}
	return c.Problem()
}

// parts returns the head and the strands of a copy, and its heads in the trash, by their names.
func (z CopyFacts) parts(c *Copy) map[string]*Dataset {
	parts := map[string]*Dataset{}
	for name, d := range z.Datasets {
		if d.ID == c.ID && d.Parent == c.Parent {
			parts[name] = d
		}
	}
	return parts
}

// Copy returns the copy of a volume, and its head or what stands for that.
func (z CopyFacts) Copy(id string) (c *Copy, name string, d *Dataset, err error) {
	if name, d = z.Volume(id); d == nil {
		return nil, "", nil, NotFound(id)
	}
	c = z.copyOf(d)
	return c, name, d, c.Damage
}

// Headless returns ErrUnavailable if there is a copy of a volume, whose head others moved away or
// destroyed. A node with such a copy is not one without a copy.
func (z CopyFacts) Headless(id string) error {
	for name, c := range z.Copies {
		if _, d := z.Volume(id); c.ID == id && d == nil && (c.Exists || c.Damage != nil) && len(z.ending(c.Parent, id)) == 0 {
			return fmt.Errorf("%w: %s has points of a copy whose head %s is gone: rename the head back if others moved it away", provision.ErrUnavailable, name, LiveName(c.Parent, id))
		}
	}
	return nil
}

// endMark is in the name of a head in the trash while the rest of its copy is there. A rename is what
// deletes a copy, so the name alone tells that it was deleted: the volume itself may be missing because
// others moved it away.
const endMark = "copy."

func endsCopy(name string) bool {
	_, last := cutLast(name)
	_, rest, _ := strings.Cut(last, ".")
	return strings.HasPrefix(rest, endMark)
}

// ending returns the heads in the trash that say that the copy of an id was deleted.
func (z CopyFacts) ending(parent, id string) (names []string) {
	for name, d := range z.Datasets {
		if d.ends && d.Parent == parent && d.ID == id {
			names = append(names, name)
		}
	}
	return names
}

// CopyState returns the record of the copy of a volume, and the token with which a stream goes on that
// was received half.
func (z CopyFacts) CopyState(id string) (n replica.Record, token string) {
	c, _, _, err := z.Copy(id)
	if err != nil {
		return n, ""
	}
	if c.Receiving != nil {
		if d := z.Datasets[c.StrandName(c.Receiving.Place)]; d != nil {
			token = d.token
		}
	}
	return c.Record, token
}

// Unsaved says where a head that counts can be compared with the newest point: the names of both. With
// no point there is no such snapshot, and unpointed says whether the head may hold data.
func (z CopyFacts) Unsaved(id string, now time.Time) (head, since string, unpointed bool, err error) {
	if z.Facts == nil {
		return "", "", false, NotFound(id)
	}
	c, head, d, err := z.Copy(id)
	if err != nil || !c.Live {
		return "", "", false, err
	}
	tip, ok := c.Tip()
	if !ok {
		return "", "", c.Unpointed(z.View(head, now)), nil
	}
	of := z.at(c, tip.Place)
	if of == "" || d.area != live || z.Answers(now) != nil {
		return "", "", false, fmt.Errorf("%w: point %v of volume %s cannot be compared with its head", provision.ErrUnavailable, tip.Point, id)
	}
	return head, of + "@" + PointName(tip.Place), false, nil
}

// numbers returns those of all places that are taken.
func (z CopyFacts) numbers(c *Copy) (all []uint64) {
	for _, d := range z.parts(c) {
		all = append(all, d.strand)
		for _, s := range d.snapshots {
			all = append(all, s.place)
		}
	}
	return all
}

// at returns the dataset that holds the snapshot of a place; empty if none does.
func (z CopyFacts) at(c *Copy, place uint64) string {
	parts := z.parts(c)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if d := parts[name]; d.area != trash && d.snapshots[PointName(place)] != nil {
			return name
		}
	}
	return ""
}

// PointAt returns the full name of the snapshot of a point.
func (z CopyFacts) PointAt(id string, p lineage.Point) (string, error) {
	c, _, _, err := z.Copy(id)
	if err != nil {
		return "", err
	}
	number, held := c.Place(p)
	of := z.at(c, number)
	if !held || of == "" {
		return "", fmt.Errorf("%w: point %v of volume %s", provision.ErrNotFound, p, id)
	}
	return of + "@" + PointName(number), nil
}

// HasPoint says whether a copy holds a point.
func (z CopyFacts) HasPoint(id string, p lineage.Point) bool {
	c, _, _, err := z.Copy(id)
	if err != nil {
		return false
	}
	_, held := c.Place(p)
	return held
}

// keeps returns how many bytes a copy takes besides its volume, in whole units: what its points hold,
// and as much as the volume for a stream that is received or was received half.
func (z CopyFacts) keeps(c *Copy) int64 {
	kept := c.kept
	if _, d := z.Volume(c.ID); d != nil && c.Receiving != nil {
		kept += Charge(d.size)
	}
	if kept < significant {
		return 0
	}
	return unitsFor(kept)
}
