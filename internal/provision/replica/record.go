package replica

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// Record is what a node keeps beside the data about its copy of a volume. The zero Record is no
// copy. Records are values: a change returns a new one and leaves the old one as it was.
type Record struct {
	// Exists tells a copy from no copy: false until the first change.
	Exists         bool `json:"-"`
	Promise        ownership.Promise
	Opened, Closed lineage.Epoch
	// Points that are held, ascending, and the places of their data. Branches have places, too.
	Points   []Point
	Branches []Branch `json:",omitempty"`
	// Preserved is the newest point that was put aside.
	Preserved lineage.Point
	Holds     []ownership.Hold         `json:",omitempty"`
	Snapshots map[string]lineage.Point `json:",omitempty"`
	Fate      provision.Fate
	// Live says that the head counts: it follows the newest point.
	Live bool
	// Since is what a backend compares to know whether a head that it made was changed.
	Since uint64 `json:",omitempty"`
	// Receiving is the stream under way, nil if there is none.
	Receiving *Receiving `json:",omitempty"`
	// Last is the number of the place that was used last.
	Last uint64

	// unknown are the fields that a newer version wrote.
	unknown map[string]json.RawMessage
}

// Point is a point with the place of its data.
type Point struct {
	lineage.Point
	Place uint64
}

// Branch is a branch with the place of its newest point. Snapshot says that it is no branch, but a CSI
// snapshot whose point is not held any more.
type Branch struct {
	provision.KeptBranch
	Place    uint64
	Snapshot bool `json:",omitempty"`
}

// Receiving is a stream under way, and the place that it is received into. Epoch is that of its
// promise when it began, From its sender's node, and Size that of the sender's volume.
type Receiving struct {
	Base, Target lineage.Point
	Epoch        lineage.Epoch
	From         string `json:",omitempty"`
	Size         int64
	Place        uint64
}

// longest is how many bytes a record may have. Btrfs keeps no longer attribute in a block of its
// usual size.
const longest = 15 << 10

// Encode returns the record as it is kept beside the data: as plain text, or packed if that is too long.
// ErrNoSpace says that it would be too long even so.
func (r Record) Encode() ([]byte, error) { return within(r, longest) }

// within returns a record in so many bytes at most.
func within(r Record, most int) ([]byte, error) {
	type plain Record
	text, err := json.Marshal(plain(r))
	if err != nil {
		return nil, err
	}
	if len(r.unknown) > 0 {
		all := maps.Clone(r.unknown)
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, err
		}
		if text, err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	if len(text) > most {
		text = pack(text)
	}
	if len(text) > most {
		return nil, fmt.Errorf("%w: the record of the copy would have %d bytes, and there is room for %d", provision.ErrNoSpace, len(text), most)
	}
	return text, nil
}

// Decode reads a record; no text is no copy. An error means that the record is damaged: the copy
// must not be touched then.
func Decode(text []byte) (Record, error) {
	if len(text) == 0 {
		return Record{}, nil
	}
	type plain Record
	var r plain
	all := map[string]json.RawMessage{}
	text, err := unpack(text)
	if err = cmp.Or(err, json.Unmarshal(text, &r), json.Unmarshal(text, &all)); err != nil {
		return Record{}, fmt.Errorf("%w: the record of the copy is damaged: %w", provision.ErrUnavailable, err)
	}
	for _, name := range fields {
		delete(all, name)
	}
	r.Exists, r.unknown = true, all
	return Record(r), nil
}

// fields are the names that Encode writes.
var fields = []string{
	"Promise", "Opened", "Closed", "Points", "Branches", "Preserved", "Holds", "Snapshots", "Fate", "Live", "Since", "Receiving", "Last",
}

// Copy returns the record as the rules of package ownership see it. A CSI snapshot is a hold that
// does not end. A volume into which the first stream is being received is no copy yet.
func (r Record) Copy(dirty bool) ownership.Copy {
	c := ownership.Copy{
		Exists:  len(r.Points) > 0 || !r.Promise.Epoch.IsZero() || !r.Opened.IsZero(),
		Promise: r.Promise, Opened: r.Opened, Closed: r.Closed, Dirty: dirty && r.Live, Preserved: r.Preserved,
		Condemned: r.Fate.Condemned, Quarantined: r.Fate.Quarantined, DestroyAt: r.Fate.DestroyAt, Holds: slices.Clone(r.Holds),
	}
	for _, p := range r.Points {
		c.Points = append(c.Points, p.Point)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Snapshots)) {
		c.Holds = append(c.Holds, ownership.Hold{For: id, Point: r.Snapshots[id], Until: provision.NoEnd})
	}
	return c
}

// View returns the record as callers see it. v is the volume, and token that of the stream that was
// received half.
func (r Record) View(v provision.Volume, dirty bool, token string) provision.Replica {
	s := provision.Replica{
		Copy: r.Copy(dirty), Filesystem: v.Filesystem, Writable: r.mayWrite() == nil && r.Live, Snapshots: maps.Clone(r.Snapshots),
	}
	s.Size = v.Size
	for _, b := range r.Branches {
		if !b.Snapshot {
			s.Branches = append(s.Branches, b.KeptBranch)
		}
	}
	if r.Receiving != nil {
		s.Receiving = &provision.Receiving{
			Base: r.Receiving.Base, Target: r.Receiving.Target, Epoch: r.Receiving.Epoch, From: r.Receiving.From, Token: token,
		}
	}
	return s
}

// Problem says why the head must not be mounted; empty for a volume that is no copy, and for a copy
// that is open for writing.
func (r Record) Problem() string {
	switch {
	case !r.Exists:
		return ""
	case !r.Live:
		return "it is a copy of a replicated volume, and its head is not the newest point: it cannot be mounted"
	case r.mayWrite() != nil:
		return provision.Problem(r.mayWrite())
	}
	return ""
}

// mayWrite returns why the copy is not open for writing.
func (r Record) mayWrite() error {
	c := ownership.Copy{Closed: r.Closed}
	switch {
	case c.GaveUp(r.Opened): // so is the copy that was never opened
		return fmt.Errorf("%w: the copy is not open for writing: it has given up epoch %v", provision.ErrConflict, r.Opened)
	case r.Opened != r.Promise.Epoch:
		return fmt.Errorf("%w: the copy is open for epoch %v, but promised %v", provision.ErrConflict, r.Opened, r.Promise.Epoch)
	case r.Fate.Condemned || r.Fate.Quarantined:
		return fmt.Errorf("%w: the copy is to be destroyed", provision.ErrConflict)
	}
	return nil
}

// Unpointed says whether a head that counts may hold data although there is no point: it was opened,
// or the volume was formatted before it became a copy.
func (r Record) Unpointed(v provision.Volume) bool {
	return r.Live && len(r.Points) == 0 && (!r.Opened.IsZero() || v.Filesystem != "")
}

// Tip returns the newest point; false if there is none.
func (r Record) Tip() (Point, bool) {
	if len(r.Points) == 0 {
		return Point{}, false
	}
	return r.Points[len(r.Points)-1], true
}

// Place returns the place of a point.
func (r Record) Place(p lineage.Point) (place uint64, ok bool) {
	i := slices.IndexFunc(r.Points, func(held Point) bool { return held.Point == p })
	if i < 0 {
		return 0, false
	}
	return r.Points[i].Place, true
}

// Leftover says that no point, branch or stream of the record has its data in a place.
func (r Record) Leftover(place uint64) bool {
	return !slices.ContainsFunc(r.Points, func(p Point) bool { return p.Place == place }) &&
		!slices.ContainsFunc(r.Branches, func(b Branch) bool { return b.Place == place }) &&
		(r.Receiving == nil || r.Receiving.Place != place)
}

// Free returns a number for a new place, beyond all that were used: there are leftovers of some.
func (r Record) Free(there []uint64) uint64 {
	last := r.Last
	for _, place := range there {
		last = max(last, place)
	}
	return last + 1
}

// fresh returns a copy of the record whose lists can be changed, without holds that have ended.
func (r Record) fresh(now time.Time) Record {
	r.Points, r.Branches, r.Snapshots = slices.Clone(r.Points), slices.Clone(r.Branches), maps.Clone(r.Snapshots)
	r.Holds = slices.DeleteFunc(slices.Clone(r.Holds), func(h ownership.Hold) bool { return !h.Until.After(now) })
	return r
}
