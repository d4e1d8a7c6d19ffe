package group

import (
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

// A copy of a thick volume is a logical volume of its own, and it takes long to fill. Its data is
// fixed before it is made: by a snapshot that nothing changes, or by a copy-on-write snapshot
// (cow) of a volume that stays in use. Until the copy is whole it bears another tag than later.
// So names and tags alone say what is left to do, and that no pod may use the copy yet:
//
//	cow   copy          means                                  next
//	yes   none          no caller was told of the copy         drop the cow
//	yes   to be filled  the cow fixes its data                 fill it, from the beginning
//	yes   whole         the cow is not needed any more         drop the cow
//	none  to be filled  it is filled from a snapshot           fill it, from the beginning
//	                    else its data is lost                  nothing: say so
//	none  whole         it is done                             nothing
//
// The cow is made first. So a copy of a volume that lacks its cow had one once, and is never filled
// with later data of the volume.

// pending is the work that is left on a copy of a thick volume, or for one that was given up.
type pending struct {
	// Cow that the copy is filled from; nil if it is filled from a snapshot, or if the cow is
	// lost.
	Cow *cow
	Tries
}

// cow is a copy-on-write snapshot of LVM's. It shows the data of a volume at one moment, as long
// as the logical volume below it has room for all the data that was overwritten since.
type cow struct {
	// of is the volume.
	of string
	// size of the logical volume below it, in bytes: it takes that much of the group.
	size int64
	wipe provision.Wipe
	// broken says that the kernel gave it up, because it could not be written.
	broken, Suspended bool
}

// CowPrefix begins the names of cows, and of nothing else of Berth's; the id of the copy
// follows.
const CowPrefix = "cow-"

func cowName(id string) string { return CowPrefix + id }

// cowChunk is how many bytes of the volume are saved when one of them is first written. The
// kernel holds some 40 bytes of memory for each chunk saved: with LVM's 4 KiB that would be
// 10 GiB for a volume of 1 TiB.
const cowChunk = 64 << 10

// cowSize returns how many bytes a cow needs so that it cannot overflow even if all of the volume
// is overwritten: every chunk, the kernel's records of them with 16 bytes for each, and a header.
func cowSize(volume int64) int64 {
	chunks := (volume + cowChunk - 1) / cowChunk
	const perRecord = cowChunk / 16
	return (1 + chunks + (chunks+perRecord)/perRecord) * cowChunk
}

// Todo is the next step of a copy.
type Todo int

const (
	todoNothing Todo = iota
	TodoFill
	TodoDrop
)

// Next returns the next step of the copy of an id.
func (h *holdings) Next(id string) Todo {
	p, c := h.Pending[id], h.Find(id)
	switch {
	case p == nil:
		return todoNothing
	case c != nil && c.copying && h.lost(id) == "":
		return TodoFill
	case c != nil && c.copying, p.Cow == nil:
		return todoNothing
	}
	return TodoDrop
}

// lost is empty, or says why the data for a copy is lost.
func (h *holdings) lost(id string) string {
	c, p := h.Find(id), h.Pending[id]
	if c == nil || !c.copying {
		return ""
	}
	if source := h.filledFrom(id); source != "" {
		if h.Snapshots[source] == nil {
			return "it was never copied whole, and snapshot " + source + ", of which it is a copy, is gone"
		}
		return ""
	}
	switch {
	case p.Cow == nil:
		return "it was never copied whole, and logical volume " + h.Name + "/" + cowName(id) + ", which held the data to copy, is gone"
	case p.Cow.broken:
		return "it was never copied whole, and logical volume " + h.Name + "/" + cowName(id) + ", which held the data to copy, could not be written"
	}
	return ""
}

// filledFrom is the snapshot that a copy is filled from; empty for one that has a cow.
func (h *holdings) filledFrom(id string) (snapshot string) {
	if v := h.Volumes[id]; v != nil {
		return v.source.Snapshot
	}
	return ""
}

// needed returns a copy for which a snapshot or a volume is still needed.
func (h *holdings) needed(id string) (by string) {
	for _, other := range slices.Sorted(maps.Keys(h.Pending)) {
		if p := h.Pending[other]; p.Cow != nil && p.Cow.of == id || h.filledFrom(other) == id {
			return other
		}
	}
	return ""
}

// pendingOf returns the pending work on a copy, and makes an entry for it if there is none.
func (h *holdings) pendingOf(id string) *pending {
	if h.Pending[id] == nil {
		h.Pending[id] = &pending{}
	}
	return h.Pending[id]
}

// cows returns how many bytes of the group the copy-on-write snapshots take.
func (h *holdings) cows() (size int64) {
	for _, p := range h.Pending {
		if p.Cow != nil {
			size += p.Cow.size
		}
	}
	return size
}

// Copies returns the tries of the copies with a next step. A copy that is suspended, or whose cow
// is, has to be mended first.
func (h *holdings) Copies() map[string]*Tries {
	due := map[string]*Tries{}
	for id, p := range h.Pending {
		c := h.Find(id)
		if h.Next(id) != todoNothing && (p.Cow == nil || !p.Cow.Suspended) && (c == nil || !c.Suspended) {
			due[id] = &p.Tries
		}
	}
	return due
}

// trouble is empty, or says why the last try to go on with a copy failed.
func (p *pending) trouble(whole bool) string {
	switch {
	case p == nil || p.failed == nil:
		return ""
	case whole:
		return "it is copied, and what helped cannot be removed, which is tried again: " + p.failed.Error()
	}
	return "its data cannot be copied, which is tried again: " + p.failed.Error()
}

// Tries are the failures in a row: failed is the last one, and Due is when the next try is due.
type Tries struct {
	failed error
	count  int
	Due    time.Time
}

// Again notes that a try failed.
func (t *Tries) Again(err error, now time.Time, first, longest time.Duration) {
	t.failed, t.Due = err, now.Add(min(first<<min(t.count, 20), longest))
	t.count++
}
