package lvm

import (
	"maps"
	"slices"

	"berth.dev/berth/internal/provision"
)

// A copy of a thick volume is a logical volume of its own, which takes long to be filled.
// What it is filled with is fixed before it is made: it is a snapshot that nothing
// changes, or a copy-on-write snapshot (cow) of a volume that goes on. Until it is whole it
// bears another tag than it will; so from names and tags alone it is known what is left to
// do, and that nobody may use it yet:
//
//	cow   copy          means                                  next
//	yes   none          nobody was told of it                  drop the cow
//	yes   to be filled  what it will hold is fixed             fill it, from the beginning
//	yes   whole         nobody needs the cow any more          drop the cow
//	none  to be filled  it is filled from a snapshot           fill it, from the beginning
//	                    else what it was to hold is lost       nothing: say so
//	none  whole         it is done                             nothing
//
// The cow comes first. So a copy that lacks it had it once, and is never filled with what
// the volume came to hold later.

// pending is what is left to do about a copy of a thick volume, or for one that was given up.
type pending struct {
	// cow that it is filled from; nil if it is filled from a snapshot, or if it is lost.
	cow *cow
	tries
}

// cow is a copy-on-write snapshot of LVM's: what a volume held at one moment, as long as
// the logical volume below it has room for all that is overwritten since.
type cow struct {
	// of is the volume.
	of string
	// size of what is below it, in bytes: that much it takes of the group.
	size int64
	wipe provision.Wipe
	// broken says that the kernel gave it up, for it could not be written.
	broken, suspended bool
}

// cowPrefix begins the names of cows, and of nothing else of Berth's; the id of the copy
// follows.
const cowPrefix = "cow-"

func cowName(id string) string { return cowPrefix + id }

// cowChunk is how many bytes of the volume are saved when one of them is first written. The
// kernel holds some 40 bytes of memory for each chunk saved: with LVM's 4 KiB that would be
// 10 GiB for a volume of 1 TiB.
const cowChunk = 64 << 10

// cowSize is what a cow needs so that it cannot overflow though all of the volume is
// overwritten: every chunk, the kernel's records of them with 16 bytes for each, and a
// header.
func cowSize(volume int64) int64 {
	chunks := (volume + cowChunk - 1) / cowChunk
	const perRecord = cowChunk / 16
	return (1 + chunks + (chunks+perRecord)/perRecord) * cowChunk
}

// todo is what is to be done next about a copy.
type todo int

const (
	todoNothing todo = iota
	todoFill
	todoDrop
)

func (g *group) next(id string) todo {
	p, c := g.pending[id], g.find(id)
	switch {
	case p == nil:
		return todoNothing
	case c != nil && c.copying && g.lost(id) == "":
		return todoFill
	case c != nil && c.copying, p.cow == nil:
		return todoNothing
	}
	return todoDrop
}

// lost is empty unless what a copy was to hold cannot be had any more.
func (g *group) lost(id string) string {
	c, p := g.find(id), g.pending[id]
	if c == nil || !c.copying || p == nil {
		return ""
	}
	if source := g.filledFrom(id); source != "" {
		if g.snapshots[source] == nil {
			return "it was never copied whole, and snapshot " + source + ", of which it is a copy, is gone"
		}
		return ""
	}
	switch {
	case p.cow == nil:
		return "it was never copied whole, and logical volume " + g.name + "/" + cowName(id) + ", which kept what it was to hold, is gone"
	case p.cow.broken:
		return "it was never copied whole, and logical volume " + g.name + "/" + cowName(id) + ", which kept what it was to hold, could not be written"
	}
	return ""
}

// filledFrom is the snapshot that a copy is filled from; empty for one that has a cow.
func (g *group) filledFrom(id string) (snapshot string) {
	if v := g.volumes[id]; v != nil {
		return v.source.Snapshot
	}
	return ""
}

// needed returns a copy for which a snapshot or a volume is still needed.
func (g *group) needed(id string) (by string) {
	for _, other := range slices.Sorted(maps.Keys(g.pending)) {
		if p := g.pending[other]; p.cow != nil && p.cow.of == id || g.filledFrom(other) == id {
			return other
		}
	}
	return ""
}

// pendingOf returns what is left to do about a copy, with a place to put it.
func (g *group) pendingOf(id string) *pending {
	if g.pending[id] == nil {
		g.pending[id] = &pending{}
	}
	return g.pending[id]
}

// cows is what the copy-on-write snapshots take of the group, in bytes.
func (g *group) cows() (size int64) {
	for _, p := range g.pending {
		if p.cow != nil {
			size += p.cow.size
		}
	}
	return size
}

// copies returns the tries of what is due; of what is suspended it is not, until that is
// mended.
func (g *group) copies() map[string]*tries {
	due := map[string]*tries{}
	for id, p := range g.pending {
		c := g.find(id)
		if g.next(id) != todoNothing && (p.cow == nil || !p.cow.suspended) && (c == nil || !c.suspended) {
			due[id] = &p.tries
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
