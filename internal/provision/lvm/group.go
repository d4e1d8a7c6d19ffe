package lvm

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

// group is what is known of one volume group.
type group struct {
	name, uuid string
	// seqno is LVM's number of the change this knowledge includes.
	seqno uint64
	// unit is the extent size, total the group's size, and foreign what others use
	// of it, thin pools with their metadata included, all in bytes.
	unit, total, foreign int64
	// problem is empty, or why nothing new may be placed here.
	problem string
	// missing is set when LVM no longer reports a group that holds volumes. They
	// stay known, so that nobody takes them for deleted.
	missing bool
	// devices are the physical volumes.
	devices []string
	// volumes are Berth's by id, others the names of all other logical volumes, and
	// pools the thin pools among these.
	volumes map[string]*volume
	others  map[string]bool
	pools   map[string]*thinPool
	// dependents are the names of others' logical volumes that LVM would remove
	// together with one of Berth's, by its id: copy-on-write snapshots of it.
	dependents map[string]string

	// turn is the state's count of own changes after the last one of this group.
	turn uint64
	// read is when LVM last answered for this group.
	read time.Time
	// stale is set when others may have changed the group since.
	stale bool
	// silent is why LVM's last answer for this group did not come.
	silent error
	// busySince is when the change that is running now began; zero if none is.
	busySince time.Time
}

type volume struct {
	// pool is the thin pool that promised the size; empty if it was carved.
	pool         string
	size         int64
	filesystem   string
	active, open bool
	// health is LVM's word for a damaged volume: "partial". Empty is healthy.
	health string
	inline provision.Inline
}

func (g *group) round(size int64) int64 { return provision.RoundUp(size, g.unit) }

// devicePath is the name LVM's own links give a volume.
func (g *group) devicePath(id string) string { return "/dev/" + g.name + "/" + id }

// view is one of the group's volumes as the world sees it.
func (g *group) view(id string) provision.Volume {
	v := g.volumes[id]
	out := provision.Volume{ID: id, Pool: g.ref(v.pool), Size: v.size, Device: g.devicePath(id), Filesystem: v.filesystem, Inline: v.inline}
	switch {
	case g.missing:
		out.Problem = "volume group " + g.name + " is missing"
	case v.health != "":
		out.Problem = "LVM reports the volume as " + v.health
	}
	return out
}

// pool is one of the group's thin pools as the world sees it, or the group itself
// with an empty name.
func (g *group) pool(thin string, now time.Time) provision.Pool {
	p := g.figures(thin)
	p.Problem = g.poolTrouble(thin, now)
	for _, id := range slices.Sorted(maps.Keys(g.volumes)) {
		if g.volumes[id].pool == thin {
			p.Volumes = append(p.Volumes, g.view(id))
		}
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

// stuck says that a change runs for longer than LVM ever takes.
func (g *group) stuck(now time.Time) bool {
	return !g.busySince.IsZero() && now.Sub(g.busySince) > slowChange
}
