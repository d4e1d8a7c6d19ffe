package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/reading"
)

// Facts holds the known facts about one volume group.
type Facts struct {
	holdings
	extents
	UUID string
	// Seqno is LVM's number of the last change that the facts include.
	Seqno uint64
	// foreign is how many bytes of the group others use, thin pools with their metadata included.
	foreign int64
	// managed says that Berth made the group and may let it grow.
	managed bool
	// Area is LVM's space for the metadata of the group.
	Area area
	// problem is empty, or why nothing new may be placed here.
	problem string
	// Missing is set when LVM no longer reports a group that holds volumes. They stay known, so
	// that a caller does not take them for deleted.
	Missing bool
	// Refused is empty, or says why Berth uses no group that LVM reports by this name. The facts
	// about the earlier group stay known.
	Refused string
	// Devices are the physical volumes.
	Devices []string
	// Pools are the thin pools by name.
	Pools ThinPools
	// UUIDs of the device mapper's devices, by the names of the logical volumes. They consist of
	// the UUIDs that LVM reports. The UUID of a device just made comes from the kernel.
	UUIDs map[string]string

	// Own is when the last own change was taken in.
	Own reading.Moment
	engine.Account
}

// holdings are the logical volumes of one group.
type holdings struct {
	// Name of the group.
	Name string
	// Volumes and Snapshots are Berth's by id, and Others the names of all other logical volumes.
	Volumes   map[string]*volume
	Snapshots map[string]*snapshot
	Others    map[string]bool
	// dependents are the names of others' logical volumes that LVM would remove
	// together with one of Berth's, by its id: copy-on-write snapshots of it.
	dependents map[string]string
	// Pending are the copies of thick volumes with work left to do, by id: each that is not whole.
	Pending map[string]*pending
	// Wiping are the remnants of deleted volumes, by the names of the logical volumes.
	Wiping map[string]*Remnant
}

func holdingsOf(group string) holdings {
	return holdings{
		Name: group, Volumes: map[string]*volume{}, Snapshots: map[string]*snapshot{}, Others: map[string]bool{},
		dependents: map[string]string{}, Pending: map[string]*pending{}, Wiping: map[string]*Remnant{},
	}
}

// carved holds the facts that volumes and snapshots have in common.
type carved struct {
	// Pool is the thin pool that promised the size; empty if the size is taken from the group.
	Pool         string
	size         int64
	filesystem   string
	Active, open bool
	// Suspended says that a command died while it changed the device, and left it suspended.
	// Frozen says that it could not be resumed.
	Suspended, Frozen bool
	// health is LVM's word for a damaged volume: "partial". Empty is healthy.
	health string
	// copying says that it is to be a copy of a thick volume and is not filled yet.
	copying bool
	// readOnly says that its device cannot be written.
	readOnly bool
	// Wipe says whether and how its bytes are wiped once it is deleted.
	Wipe provision.Wipe
	// wiped is set if an administrator made a remnant a volume again: it is the number that was
	// recorded of the remnant, and is not valid any more.
	wiped int64
}

type volume struct {
	carved
	inline provision.Inline
	claim  string
	source provision.Source
	// Growing says that it is a thin copy and not yet as large as it must be. Its size is the
	// promised one even then.
	Growing bool
}

type snapshot struct {
	carved
	// of is the id of its volume, which may be gone.
	of    string
	taken time.Time
}

// Find returns a volume or a snapshot; nil if the group has neither.
func (h *holdings) Find(id string) *carved {
	if v := h.Volumes[id]; v != nil {
		return &v.carved
	}
	if s := h.Snapshots[id]; s != nil {
		return &s.carved
	}
	return nil
}

// DevicePath is the name LVM's own links give a volume.
func (g *Facts) DevicePath(id string) string { return "/dev/" + g.Name + "/" + id }

// View returns one of the group's volumes as other packages see it.
func (g *Facts) View(id string) provision.Volume {
	v := g.Volumes[id]
	return provision.Volume{
		ID: id, Pool: g.Ref(v.Pool), Size: v.size, Content: g.content(id),
		Filesystem: v.filesystem, Problem: g.damage(id), Inline: v.inline, Source: v.source, Claim: v.claim, Copying: v.Growing || g.Pending[id] != nil,
	}
}

// ViewSnapshot returns one of the group's snapshots as other packages see it. All of its size
// counts as allocated: it comes to hold all of the volume's old data if the whole volume is
// overwritten.
func (g *Facts) ViewSnapshot(id string) provision.Snapshot {
	s := g.Snapshots[id]
	return provision.Snapshot{
		ID: id, Volume: s.of, Pool: g.Ref(s.Pool), Size: s.size, Allocated: s.size, Filesystem: s.filesystem, Taken: s.taken,
		Copying: g.Pending[id] != nil, Problem: g.damage(id),
	}
}

// damage is empty, or says why a volume or a snapshot cannot be used.
func (g *Facts) damage(id string) string {
	c, lost := g.Find(id), g.lost(id)
	switch {
	case g.Missing:
		return "volume group " + g.Name + " is missing"
	case g.Refused != "":
		return g.Refused
	case c.health != "":
		return "LVM reports it as " + c.health
	case c.Frozen:
		return "its device is suspended, and its users wait: resume it (lvchange --refresh " + g.Name + "/" + id + ")"
	case lost != "":
		return lost
	}
	return g.Pending[id].trouble(!c.copying)
}

// Pool returns one of the group's thin pools as other packages see it, or the group itself with
// an empty name.
func (g *Facts) Pool(thin string, now time.Time) provision.Pool {
	p := g.figures(thin)
	p.Problem = cmp.Or(g.poolTrouble(thin, now), g.Area.Crowded())
	for _, id := range slices.Sorted(maps.Keys(g.Volumes)) {
		if g.Volumes[id].Pool == thin {
			p.Volumes = append(p.Volumes, g.View(id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.Snapshots)) {
		if g.Snapshots[id].Pool == thin {
			p.Snapshots = append(p.Snapshots, g.ViewSnapshot(id))
		}
	}
	if thin == "" {
		p.Wiping = g.remnants()
	}
	return p
}

// Trouble is empty, or says why nothing new may be placed in the group.
func (g *Facts) Trouble(now time.Time) string {
	switch {
	case g.Missing:
		return "the volume group is missing: bring its disks back, or restore or remove it"
	case g.Refused != "":
		return g.Refused
	case g.Silent != nil:
		if g.Read.IsZero() {
			return fmt.Sprintf("LVM does not answer, nothing is known: %v", g.Silent)
		}
		return fmt.Sprintf("LVM does not answer, and its last report is %v old: %v", now.Sub(g.Read).Round(time.Second), g.Silent)
	case g.Stuck(now):
		return fmt.Sprintf("LVM has been changing the volume group for %v", now.Sub(g.BusySince()).Round(time.Second))
	default:
		return g.problem
	}
}

// Changeable says that LVM can change the group, and that it is known which group the name means.
func (g *Facts) Changeable() bool { return !g.Missing && g.Refused == "" && g.problem == "" }

// Suspended returns the suspended volumes, snapshots, cows and remnants; none of a group that is
// nil.
func (g *Facts) Suspended() (ids []string) {
	if g == nil || !g.Changeable() {
		return nil
	}
	for id, v := range g.Volumes {
		if v.Suspended {
			ids = append(ids, id)
		}
	}
	for id, s := range g.Snapshots {
		if s.Suspended {
			ids = append(ids, id)
		}
	}
	for id, left := range g.Pending {
		if left.Cow != nil && left.Cow.Suspended {
			ids = append(ids, cowName(id))
		}
	}
	for id, r := range g.Wiping {
		if r.Suspended {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// SuspendedPools returns the suspended thin pools; none of a group that is nil.
func (g *Facts) SuspendedPools() (names []string) {
	if g == nil || !g.Changeable() {
		return nil
	}
	return g.Pools.pick(slices.Sorted(maps.Keys(g.Pools)), func(p *ThinPool) bool { return p.Suspended })
}
