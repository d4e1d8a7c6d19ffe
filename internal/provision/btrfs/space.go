package btrfs

import (
	"cmp"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// Unit is what sizes are rounded up to.
const unit = 4 << 20

const (
	gibibyte = 1 << 30
	// leastMetadata is set aside for the metadata of any filesystem, beside a part of its size.
	leastMetadata = gibibyte / 4
)

// copies says how many copies of its content a profile of chunks keeps. Those with parity are
// missing: the room that they leave cannot be told.
var copies = map[string]int64{"single": 1, "raid0": 1, "dup": 2, "raid1": 2, "raid10": 2}

// capacity returns how many bytes of data a filesystem has room for, or why that is not known. It
// depends on the disks and profiles, and not on the data: what it leaves to metadata, and to one
// chunk of data that is only partly filled, it leaves from the beginning.
func capacity(s kernel.Space) (total int64, trouble string) {
	if s.ReadOnly {
		return 0, "it is read-only: it was mounted so, or a disk failed (the kernel's log says more)"
	}
	var raw, largest int64
	for _, d := range s.Disks {
		if d.Missing {
			return 0, "it lacks a disk: bring the disk back, or replace it (btrfs replace)"
		}
		raw, largest = raw+d.Size, max(largest, d.Size)
	}
	factor := int64(0)
	for _, p := range s.Data.Profiles {
		if copies[p] == 0 {
			return 0, fmt.Sprintf("it keeps data as %s, which Berth cannot use: convert it (btrfs balance start -dconvert=raid1)", p)
		}
		factor = max(factor, copies[p])
	}
	if factor == 0 {
		return 0, "it does not tell how it keeps data apart from metadata, which Berth needs to know"
	}
	usable := raw
	switch {
	case slices.Contains(s.Data.Profiles, "raid10"):
		usable = striped(s.Disks)
	case !slices.Contains(s.Data.Profiles, "dup") && factor > 1:
		usable = min(raw, 2*(raw-largest)) // each copy is on another disk
	}
	usable -= s.System.Raw + max(s.Metadata.Raw, raw/16+leastMetadata) + min(gibibyte, raw/10)*factor
	return max(usable, 0) / factor / unit * unit, ""
}

// striped returns how much of some disks chunks can take that go over as many disks as have room, and
// over an even number: each takes the same of each. The kernel begins with the disks that have the most
// room. What is left on an odd or a larger disk is of no use.
func striped(disks []kernel.Disk) (usable int64) {
	var left []int64
	for _, d := range disks {
		left = append(left, d.Size)
	}
	const steps = 64
	for {
		slices.SortFunc(left, func(a, b int64) int { return cmp.Compare(b, a) })
		if end := slices.IndexFunc(left, func(size int64) bool { return size <= 0 }); end >= 0 {
			left = left[:end]
		}
		stripe := len(left) / 2 * 2
		if stripe == 0 {
			return usable
		}
		chunk := min(left[stripe-1], max(left[0]/steps, gibibyte/steps))
		for i := range stripe {
			left[i] -= chunk
		}
		usable += chunk * int64(stripe)
	}
}

// crowded says that a filesystem can hardly write metadata any more.
func crowded(s kernel.Space) bool {
	var unallocated int64
	for _, d := range s.Disks {
		unallocated += d.Size - d.Allocated
	}
	return s.Metadata.Used > s.Metadata.Total/8*7 && unallocated < leastMetadata
}

// tally adds up what entries keep of each other.
type tally struct {
	// pinned is how many bytes of a volume others keep, at most, though its tenant may overwrite
	// them, by the ids of subvolumes. live are the subvolumes of the volumes that are here,
	// and here has those of the trash, too. leaving is what those in the trash keep, until the
	// kernel has freed it.
	pinned, leaving map[uint64]int64
	live, here      map[uint64]bool
}

func (u *facts) tally() tally {
	t := tally{pinned: map[uint64]int64{}, leaving: map[uint64]int64{}, live: map[uint64]bool{}, here: map[uint64]bool{}}
	for _, of := range []map[string]*entry{u.volumes, u.snapshots} {
		for _, e := range of {
			for id, bytes := range e.Pins {
				t.pinned[id] += bytes
			}
		}
	}
	for _, v := range u.volumes {
		t.live[v.Subvolume.ID], t.here[v.Subvolume.ID] = true, true
		for id, bytes := range v.held.pins() {
			t.pinned[id] += bytes
		}
	}
	for _, e := range u.trash {
		t.here[e.Subvolume.ID] = true
		for _, pins := range []map[uint64]int64{e.Pins, e.held.pins()} {
			for id, bytes := range pins {
				t.leaving[id] += bytes
			}
		}
	}
	return t
}

// keeps returns how many bytes of the volumes that are here an entry keeps. What it keeps of
// others that were deleted is measured: it counts as foreign.
func (t tally) keeps(e *entry) (pins int64) {
	for id, bytes := range e.Pins {
		if t.live[id] {
			pins += bytes
		}
	}
	return pins
}

// limit returns how much the tenant of a volume may take. What was overwritten and is kept by
// others still counts for the volume.
func (t tally) limit(volume *entry) int64 {
	return t.charged(volume) + t.leaving[volume.Subvolume.ID] + volume.held.receives(volume.Size)
}

// charged returns how much of that is charged, to a volume and its copies. What is still taken beyond
// that is measured: it counts as foreign.
func (t tally) charged(volume *entry) int64 { return volume.Size + t.pinned[volume.Subvolume.ID] }

// figures returns the pool without its volumes and snapshots.
func (u *facts) figures(t tally) provision.Pool {
	p := provision.Pool{PoolRef: u.ref(), Total: u.total, Unit: unit}
	ours, charged := int64(0), int64(0)
	for _, v := range u.volumes {
		ours += min(v.taken, t.charged(v))
		charged += v.Size + v.held.receives(v.Size)
		p.Foreign += t.keeps(v)
		for id, bytes := range v.held.pins() {
			if t.live[id] {
				charged += bytes
			}
		}
	}
	for _, e := range u.trash {
		if e.Volume == "" {
			ours += min(e.taken, e.Size)
			charged += e.Size
		}
	}
	for _, s := range u.snapshots {
		charged += t.keeps(s)
	}
	p.Foreign += provision.RoundUp(max(u.space.Data.Used-ours, 0), unit)
	p.Total = max(p.Total, p.Foreign+charged)
	p.Free = p.Total - p.Foreign - charged
	return p
}
