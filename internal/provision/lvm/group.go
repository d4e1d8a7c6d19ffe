package lvm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/reading"
)

// group is what is known of one volume group.
type group struct {
	name, uuid string
	// seqno is LVM's number of the change this knowledge includes.
	seqno uint64
	// unit is the extent size, total the group's size, and foreign what others use
	// of it, thin pools with their metadata included, all in bytes.
	unit, total, foreign int64
	// managed says that Berth made the group and may let it grow.
	managed bool
	// area is where LVM keeps what it knows of the group.
	area area
	// problem is empty, or why nothing new may be placed here.
	problem string
	// missing is set when LVM no longer reports a group that holds volumes. They
	// stay known, so that nobody takes them for deleted.
	missing bool
	// refused is empty, or why no group that LVM reports by this name is believed. What is
	// known of the one that was stays known.
	refused string
	// devices are the physical volumes.
	devices []string
	// volumes and snapshots are Berth's by id, others the names of all other logical
	// volumes, and pools the thin pools among these.
	volumes   map[string]*volume
	snapshots map[string]*snapshot
	others    map[string]bool
	pools     map[string]*thinPool
	// dependents are the names of others' logical volumes that LVM would remove
	// together with one of Berth's, by its id: copy-on-write snapshots of it.
	dependents map[string]string
	// pending are the copies of thick volumes that something is left to do about, by id.
	pending map[string]*pending
	// wiping is what deleted volumes left, by the names of the logical volumes.
	wiping map[string]*remnant
	// uuids of the device mapper's devices, by the names of the logical volumes. LVM reports
	// its own ones, of which they consist; the kernel tells that of a device just made.
	uuids map[string]string

	// own is when the last own change was taken in.
	own reading.Moment
	// read is when LVM last answered for this group, and mark says whether it is to be
	// read again.
	read time.Time
	mark reading.Mark
	// silent is why LVM's last answer for this group did not come.
	silent error
	// busySince is when the change that is running now began; zero if none is.
	busySince time.Time
}

// carved is what is known of any logical volume of Berth's.
type carved struct {
	// pool is the thin pool that promised the size; empty if it takes its size of the
	// group.
	pool         string
	size         int64
	filesystem   string
	active, open bool
	// suspended is what a command leaves that dies while it changes the device, and frozen
	// says that it could not be resumed.
	suspended, frozen bool
	// health is LVM's word for a damaged volume: "partial". Empty is healthy.
	health string
	// copying says that it is to be a copy of a thick volume and is not filled yet.
	copying bool
	// readOnly says that its device cannot be written.
	readOnly bool
	// wipe is what becomes of its bytes once it is deleted.
	wipe provision.Wipe
	// wiped is recorded of what was deleted once and made a volume again, by hand: nothing of
	// that holds any more.
	wiped int64
}

type volume struct {
	carved
	inline provision.Inline
	source provision.Source
	// growing says that it is a thin copy and not yet as large as it must be. Its size is
	// what it was promised all the same.
	growing bool
}

type snapshot struct {
	carved
	// of is the id of its volume, which may be gone.
	of    string
	taken time.Time
}

// find returns a volume or a snapshot; nil if the group has neither.
func (g *group) find(id string) *carved {
	if v := g.volumes[id]; v != nil {
		return &v.carved
	}
	if s := g.snapshots[id]; s != nil {
		return &s.carved
	}
	return nil
}

func (g *group) round(size int64) int64 { return provision.RoundUp(size, g.unit) }

// devicePath is the name LVM's own links give a volume.
func (g *group) devicePath(id string) string { return "/dev/" + g.name + "/" + id }

// view is one of the group's volumes as the world sees it.
func (g *group) view(id string) provision.Volume {
	v := g.volumes[id]
	return provision.Volume{
		ID: id, Pool: g.ref(v.pool), Size: v.size, Device: g.devicePath(id), Identity: g.identity(id),
		Filesystem: v.filesystem, Problem: g.damage(id), Inline: v.inline, Source: v.source, Copying: v.growing || g.pending[id] != nil,
	}
}

// viewSnapshot is one of the group's snapshots as the world sees it. It may come to
// hold all of what the volume held, when that is written anew.
func (g *group) viewSnapshot(id string) provision.Snapshot {
	s := g.snapshots[id]
	return provision.Snapshot{
		ID: id, Volume: s.of, Pool: g.ref(s.pool), Size: s.size, Allocated: s.size, Filesystem: s.filesystem, Taken: s.taken,
		Copying: g.pending[id] != nil, Problem: g.damage(id),
	}
}

// damage is empty, or says why a volume or a snapshot cannot be used.
func (g *group) damage(id string) string {
	c, lost := g.find(id), g.lost(id)
	switch {
	case g.missing:
		return "volume group " + g.name + " is missing"
	case g.refused != "":
		return g.refused
	case c.health != "":
		return "LVM reports it as " + c.health
	case c.frozen:
		return "its device is suspended, and whoever uses it waits: resume it (lvchange --refresh " + g.name + "/" + id + ")"
	case lost != "":
		return lost
	}
	return g.pending[id].trouble(!c.copying)
}

// pool is one of the group's thin pools as the world sees it, or the group itself
// with an empty name.
func (g *group) pool(thin string, now time.Time) provision.Pool {
	p := g.figures(thin)
	p.Problem = cmp.Or(g.poolTrouble(thin, now), g.area.crowded())
	for _, id := range slices.Sorted(maps.Keys(g.volumes)) {
		if g.volumes[id].pool == thin {
			p.Volumes = append(p.Volumes, g.view(id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.snapshots)) {
		if g.snapshots[id].pool == thin {
			p.Snapshots = append(p.Snapshots, g.viewSnapshot(id))
		}
	}
	if thin == "" {
		p.Wiping = g.remnants()
	}
	return p
}

// slowChange is when a change of a group has run so long that LVM must hang.
const slowChange = 2 * time.Minute

// trouble is empty, or says why nothing new may be placed in the group.
func (g *group) trouble(now time.Time) string {
	switch {
	case g.missing:
		return "the volume group is missing: bring its disks back, or restore or remove it"
	case g.refused != "":
		return g.refused
	case g.silent != nil:
		if g.read.IsZero() {
			return fmt.Sprintf("LVM does not answer, nothing is known: %v", g.silent)
		}
		return fmt.Sprintf("LVM does not answer, what is known is %v old: %v", now.Sub(g.read).Round(time.Second), g.silent)
	case g.stuck(now):
		return fmt.Sprintf("LVM has been changing the volume group for %v", now.Sub(g.busySince).Round(time.Second))
	default:
		return g.problem
	}
}

// changeable says that LVM can change the group, and that it is known which one that is.
func (g *group) changeable() bool { return !g.missing && g.refused == "" && g.problem == "" }

// stuck says that a change runs for longer than LVM ever takes.
func (g *group) stuck(now time.Time) bool {
	return !g.busySince.IsZero() && now.Sub(g.busySince) > slowChange
}
