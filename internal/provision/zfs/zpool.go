package zfs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
)

// zpool is what is known of one zpool.
type zpool struct {
	name string
	// capacity is what may be charged in the zpool, and foreign what others than Berth
	// take of that, in raw bytes.
	capacity, foreign int64
	// available is what ZFS says is left for new datasets.
	available int64
	// parents are the quotas of the datasets that are pools, 0 for none.
	parents map[string]int64
	// areas are the hidden filesystems that exist, and whether they are hidden yet.
	areas map[string]bool
	// datasets are Berth's by their full names, others the names of all else.
	datasets map[string]*dataset
	others   map[string]bool
	// foreignVolumes are how many of the others are zvols.
	foreignVolumes int

	// health is the kernel's word for the zpool.
	health string
	// missing is set when a zpool that holds volumes is not there any more.
	missing bool
	// unfit says why the programs of ZFS must not be used on the zpool; empty if they may.
	unfit string
	// read is when ZFS last answered, and silent why the last answer did not come. cluttered
	// is set if something was left over then: the figures are with that.
	read      time.Time
	silent    error
	cluttered bool
	activity
}

// dataset is one of Berth's zvols or filesystems.
type dataset struct {
	parent string
	area   area
	kind   string // kindVolume or kindFilesystem
	id     string
	size   int64
	// quota of a filesystem: its size, or more while it grows.
	quota int64
	record
	// holds says that it holds data of its own, when it was last read.
	holds bool
	// origin is the snapshot that it is a clone of.
	origin string
	// reserved says that room is reserved for it, short that it is not enough for a zvol, which
	// grows before its room does, and dirty that it holds what none of its snapshots does.
	reserved, short, dirty bool
	// unfinished is set for what has the place of a volume and bears no record, and holds
	// nothing: a crash left it when it was being made.
	unfinished bool
	// snapshots by the name that follows the volume's.
	snapshots map[string]*snapshot
}

// isVolume says whether it is a volume to the world.
func (d *dataset) isVolume() bool { return d.area == live && !d.unfinished }

type snapshot struct {
	// id is Berth's id; empty for a snapshot that was deleted and lives on for its
	// clones, for the base of a clone, and for others' snapshots.
	id string
	// base is set for what a clone of a volume was made from, and deferred once it goes
	// with the last clone.
	base, deferred bool
	// allocated is what it holds, and estimated is set while that is not known: all at most.
	size, allocated int64
	estimated       bool
	filesystem      string
	taken           time.Time
	order           int64 // by which snapshots of one volume were taken
}

// newZpool sorts a report of a zpool.
func newZpool(rows []row) (*zpool, error) {
	if len(rows) == 0 || rows[0].kind != kindFilesystem {
		return nil, fmt.Errorf("reading ZFS's report: it does not begin with a zpool")
	}
	z := &zpool{
		name: rows[0].name, parents: map[string]int64{rows[0].name: rows[0].quota}, areas: map[string]bool{},
		datasets: map[string]*dataset{}, others: map[string]bool{},
	}
	for _, r := range rows {
		if r.kind == kindFilesystem && r.pool == r.name {
			z.parents[r.name] = r.quota
		}
	}
	for _, r := range rows {
		switch r.kind {
		case kindFilesystem:
			z.sortFilesystem(r)
		case kindVolume:
			z.sortVolume(r)
		}
	}
	for _, r := range rows {
		name, at, _ := strings.Cut(r.name, "@")
		if d := z.datasets[name]; d != nil && r.kind == kindSnapshot {
			d.snapshots[at] = newSnapshot(at, r)
		}
	}
	z.reckon(rows)
	return z, nil
}

func (z *zpool) sortFilesystem(r row) {
	if _, last := cutLast(r.name); last == liveArea || last == trashArea {
		z.areas[r.name] = r.canMount == "off"
		return
	}
	if r.pool == r.name || !z.take(r, datasetSize(r)) {
		z.others[r.name] = true
	}
}

func (z *zpool) sortVolume(r row) {
	if !z.take(r, r.volsize) {
		z.others[r.name] = true
		z.foreignVolumes++
	}
}

// take takes a zvol or a dataset in if it is Berth's, which it is if its record bears its
// name: one that somebody renamed is not, since guessing which is right could destroy data.
// So is what has a volume's place and name if it bears no record at all, and holds nothing.
func (z *zpool) take(r row, size int64) bool {
	parent, where, id := place(r.name)
	unfinished := where == live && r.volume == "-" && r.holds() < significant && provision.CheckID(id) == nil
	if _, pool := z.parents[parent]; !pool || where == elsewhere || r.volume != id && !unfinished {
		return false
	}
	z.datasets[r.name] = &dataset{
		unfinished: unfinished, holds: r.holds() >= significant,
		parent: parent, area: where, kind: r.kind, id: id, size: size, quota: r.refquota, record: parseRecord(r), origin: r.origin,
		reserved: r.refreservation > 0, short: where == live && r.refreservation > 0 && r.refreservation < r.volsize, dirty: r.written > atRest[r.kind], snapshots: map[string]*snapshot{},
	}
	return true
}

// zvols are how many of Berth's volumes have a device.
func (z *zpool) zvols() (n int) {
	for _, d := range z.datasets {
		if !d.files() {
			n++
		}
	}
	return n
}

func newSnapshot(name string, r row) *snapshot {
	size := sizeOfSnapshot(r)
	s := &snapshot{
		base: strings.HasPrefix(name, basePrefix), deferred: r.deferred, order: r.createTXG,
		size: size, allocated: min(provision.RoundUp(r.referenced, Unit), size),
		filesystem: set(r.filesystem), taken: takenAt(r),
	}
	if r.snapshot == name && !r.deferred {
		s.id = name
	}
	return s
}

// volume returns a volume by its id.
func (z *zpool) volume(id string) (name string, d *dataset) {
	if z == nil {
		return "", nil
	}
	for name, d := range z.datasets {
		if d.id == id && d.isVolume() {
			return name, d
		}
	}
	return "", nil
}

// snapshot returns one of Berth's snapshots by its id, with what it is of.
func (z *zpool) snapshot(id string) (of string, s *snapshot) {
	if z == nil {
		return "", nil
	}
	for name, d := range z.datasets {
		if s := d.snapshots[id]; s != nil && s.id != "" {
			return name, s
		}
	}
	return "", nil
}

// cloned says whether anything is a clone of a snapshot.
func (z *zpool) cloned(snapshot string) bool {
	for _, d := range z.datasets {
		if d.origin == snapshot {
			return true
		}
	}
	return false
}

// trashName is a name for a volume in the trash that is not taken.
func (z *zpool) trashName(parent, id string) string {
	for n := 1; ; n++ {
		name := parent + "/" + trashArea + "/" + id + "." + strconv.Itoa(n)
		if z.datasets[name] == nil && !z.others[name] {
			return name
		}
	}
}

// newest is the name of the last snapshot of a volume; empty if there is none.
func (d *dataset) newest() string {
	names := slices.Sorted(maps.Keys(d.snapshots))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(d.snapshots[a].order, d.snapshots[b].order) })
}

// last is the order of the last snapshot of a volume; 0 if there is none.
func (d *dataset) last() int64 {
	if s := d.snapshots[d.newest()]; s != nil {
		return s.order
	}
	return 0
}
