package zpool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// Facts holds the facts about one zpool.
type Facts struct {
	Name string
	// guid that ZFS gave to the filesystem of the zpool's name.
	guid string
	// capacity is how many raw bytes may be charged in the zpool, and foreign how many of them
	// others than Berth take.
	capacity, foreign int64
	// available is how many bytes ZFS has left for new datasets.
	available int64
	// Parents are the quotas of the datasets that are pools, 0 for none.
	Parents map[string]int64
	// areas are the hidden filesystems that exist, and whether they are hidden yet.
	areas map[string]bool
	// Datasets are Berth's datasets by their full names. Others are the names of all others.
	Datasets map[string]*Dataset
	Others   map[string]bool
	// Copies of replicated volumes, by the names of their filesystems.
	Copies map[string]*Copy
	// ForeignVolumes are how many of the others are zvols that have a device.
	ForeignVolumes int

	// Health is the kernel's word for the state of the zpool.
	Health string
	// Missing is set when a zpool that holds volumes is not there any more.
	Missing bool
	// Unfit says why the programs of ZFS must not be used on the zpool; empty if they may.
	Unfit string
	// Cluttered is set if there were leftovers when ZFS last answered: the figures include them.
	Cluttered bool
	// Asking is set while a query has no answer, and Tidying while the tidier waits to tidy up.
	Asking, Tidying bool
	engine.Account
}

// Dataset is one of Berth's zvols or filesystems.
type Dataset struct {
	Parent string
	area   area
	kind   string // kindVolume or kindFilesystem
	ID     string
	// guid that ZFS gave to it; empty if Berth made it since the last report.
	guid string
	size int64
	// quota of a filesystem: its size, or more while it grows.
	quota int64
	record
	// holds says that it held data of its own when it was last read.
	holds bool
	// origin is the snapshot that it is a clone of.
	origin string
	// reserved says that room is reserved for it. short says that the room is not enough for a
	// zvol, which grows before its reservation. dirty says that it holds data that none of its
	// snapshots holds.
	reserved, short, dirty bool
	// unfinished is set for a dataset that has the place of a volume, bears no record, and holds
	// nothing: a crash left it when it was being made.
	unfinished bool
	// snapshots by the name that follows the volume's.
	snapshots map[string]*Snapshot
	// deviceless says that a zvol has no device.
	deviceless bool
	// strand is the number of a dataset that a copy keeps beside its head; 0 for none. wasHead says
	// that it was the head, and stands that it stands for the volume until there is another head.
	strand          uint64
	wasHead, stands bool
	// ends says that it was the head of a copy, and is in the trash until the copy is gone.
	ends bool
	// token with which a stream goes on that was received half.
	token string
}

// IsVolume says whether callers see it as a volume.
func (d *Dataset) IsVolume() bool { return d.area == live && !d.unfinished || d.stands }

// Snapshot is one of a Dataset.
type Snapshot struct {
	// id is Berth's id; empty for a snapshot that was deleted and lives on for its
	// clones, for the base of a clone, and for others' snapshots.
	id string
	// guid that ZFS gave to it; empty if Berth took it since the last report.
	guid string
	// base is set for a snapshot that was taken to clone a volume. deferred is set once the
	// snapshot goes with its last clone.
	base, deferred bool
	// allocated is how many bytes it holds. While that is not known, estimated is set, and
	// allocated is all of the size.
	size, allocated int64
	estimated       bool
	filesystem      string
	taken           time.Time
	order           int64 // in which snapshots of one volume were taken
	// place is the number of a point of a copy; 0 for any other snapshot.
	place uint64
}

// New makes Facts of a report of a zpool.
func New(rows []Row) (*Facts, error) {
	if len(rows) == 0 || rows[0].kind != kindFilesystem {
		return nil, fmt.Errorf("reading ZFS's report: it does not begin with a zpool")
	}
	z := &Facts{
		Name: rows[0].name, guid: rows[0].guid, Parents: map[string]int64{rows[0].name: rows[0].quota}, areas: map[string]bool{},
		Datasets: map[string]*Dataset{}, Others: map[string]bool{}, Copies: map[string]*Copy{},
	}
	for _, r := range rows {
		if r.kind == kindFilesystem && r.pool == r.name {
			z.Parents[r.name] = r.quota
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
		if d := z.Datasets[name]; d != nil && r.kind == kindSnapshot {
			d.snapshots[at] = newSnapshot(at, r)
		}
	}
	CopiesIn(z).appoint()
	z.reckon(rows)
	return z, nil
}

func (z *Facts) sortFilesystem(r Row) {
	if _, last := cutLast(r.name); last == liveArea || last == trashArea || last == copiesArea {
		z.areas[r.name] = r.canMount == "off"
		return
	}
	if CopiesIn(z).takeCopy(r) {
		return
	}
	if r.pool == r.name || !z.take(r, datasetSize(r)) {
		z.Others[r.name] = true
	}
}

func (z *Facts) sortVolume(r Row) {
	if CopiesIn(z).takeCopy(r) || z.take(r, r.volsize) {
		return
	}
	if z.Others[r.name] = true; r.volMode != none {
		z.ForeignVolumes++
	}
}

// take takes a zvol or a dataset in if it is Berth's. It is Berth's if its record bears its
// name. A renamed one is not, since guessing which name is right could destroy data. It is also
// Berth's if it has a volume's place and name, bears no record at all, and holds nothing.
func (z *Facts) take(r Row, size int64) bool {
	parent, where, id := locate(r.name)
	unfinished := where == live && r.volume == "-" && r.holds() < significant && provision.CheckID(id) == nil
	if _, pool := z.Parents[parent]; !pool || where == elsewhere || r.volume != id && !unfinished {
		return false
	}
	d := newDataset(r, parent, where, id, size)
	d.unfinished = unfinished
	z.Datasets[r.name] = d
	return true
}

func newDataset(r Row, parent string, where area, id string, size int64) *Dataset {
	return &Dataset{
		ends: where == trash && endsCopy(r.name), holds: r.holds() >= significant, deviceless: r.volMode == none,
		Parent: parent, area: where, kind: r.kind, ID: id, guid: r.guid, size: size, quota: r.refquota, record: parseRecord(r), origin: r.origin,
		reserved: r.refreservation > 0, short: where == live && r.refreservation > 0 && r.refreservation < r.volsize, dirty: r.written > atRest[r.kind], snapshots: map[string]*Snapshot{},
	}
}

// Zvols returns how many of Berth's datasets have a device.
func (z *Facts) Zvols() (n int) {
	for _, d := range z.Datasets {
		if !d.Files() && !d.deviceless {
			n++
		}
	}
	return n
}

func newSnapshot(name string, r Row) *Snapshot {
	size := sizeOfSnapshot(r)
	s := &Snapshot{
		guid: r.guid, base: r.snapshot == name && strings.HasPrefix(name, basePrefix), deferred: r.deferred, order: r.createTXG,
		size: size, allocated: min(provision.RoundUp(r.referenced, Unit), size),
		filesystem: set(r.filesystem), taken: takenAt(r), place: placeOf(name),
	}
	if r.snapshot == name && !s.base && !r.deferred {
		s.id = name
	}
	return s
}

// Volume returns a volume by its id.
func (z *Facts) Volume(id string) (name string, d *Dataset) {
	if z == nil {
		return "", nil
	}
	for name, d := range z.Datasets {
		if d.ID == id && d.IsVolume() {
			return name, d
		}
	}
	return "", nil
}

// Snapshot returns one of Berth's snapshots by its id, with the name of its dataset.
func (z *Facts) Snapshot(id string) (of string, s *Snapshot) {
	if z == nil {
		return "", nil
	}
	for name, d := range z.Datasets {
		if s := d.snapshots[id]; s != nil && s.id != "" {
			return name, s
		}
	}
	return "", nil
}

// Taken returns a dataset that is not Berth's and bears a volume's name in some pool.
func (z *Facts) Taken(id string) (dataset string, ok bool) {
	if z == nil {
		return "", false
	}
	for parent := range z.Parents {
		if name := LiveName(parent, id); z.Others[name] {
			dataset, ok = name, true
		}
	}
	return dataset, ok
}

// Bear returns the names of all volumes and snapshots that bear an id.
func (z *Facts) Bear(id string) (volumes, snapshots []string) {
	for name, d := range z.Datasets {
		if d.ID == id && d.IsVolume() {
			volumes = append(volumes, name)
		}
		if s := d.snapshots[id]; s != nil && s.id != "" {
			snapshots = append(snapshots, name+"@"+id)
		}
	}
	return volumes, snapshots
}

// cloned says whether anything is a clone of a snapshot.
func (z *Facts) cloned(snapshot string) bool {
	for _, d := range z.Datasets {
		if d.origin == snapshot {
			return true
		}
	}
	return false
}

// trashName returns a free name for a volume in the trash. A mark in it says what else the name tells.
func (z *Facts) trashName(parent, id, mark string) string {
	for n := 1; ; n++ {
		name := parent + "/" + trashArea + "/" + id + "." + mark + strconv.Itoa(n)
		if z.Datasets[name] == nil && !z.Others[name] {
			return name
		}
	}
}

// newest returns the name of the last snapshot of a volume; empty if there is none.
func (d *Dataset) newest() string {
	names := slices.Sorted(maps.Keys(d.snapshots))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(d.snapshots[a].order, d.snapshots[b].order) })
}

// last returns the order of the last snapshot of a volume; 0 if there is none.
func (d *Dataset) last() int64 {
	if s := d.snapshots[d.newest()]; s != nil {
		return s.order
	}
	return 0
}

// NotFound says that there is no volume or snapshot of an id.
func NotFound(id string) error { return fmt.Errorf("%w: %s", provision.ErrNotFound, id) }
