package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision/reading"
)

// Stranger is a volume group on a device that pods write to. It is no pool, none of its volumes
// count, and Berth never runs a command on it.
type Stranger struct {
	Name, UUID string
	// device does not belong to the node, and why says the reason.
	device, why string
}

func (s Stranger) String() string {
	return fmt.Sprintf("volume group %s (%s) on %s: %s", s.Name, s.UUID, s.device, s.why)
}

// Answer is what LVM reported.
type Answer struct {
	// Groups are those of the node, each with a name of its own.
	Groups []*Facts
	// Contested says, by name, why the groups of that name are not used.
	Contested map[string]string
	Strangers []Stranger
	// All says that no other groups exist.
	All bool
	// Asked is when LVM was asked.
	Asked reading.Moment
}

// Sift separates the groups of the node from those that pods wrote, and from those that share a
// name, which does not identify any of them.
func Sift(read []*Facts, strange func(device string) string) Answer {
	a := Answer{Contested: map[string]string{}}
	byName := map[string][]*Facts{}
	for _, g := range read {
		if s, is := stranger(g, strange); is {
			a.Strangers = append(a.Strangers, s)
			continue
		}
		byName[g.Name] = append(byName[g.Name], g)
	}
	for name, groups := range byName {
		if len(groups) == 1 {
			a.Groups = append(a.Groups, groups[0])
			continue
		}
		a.Contested[name] = contest(name, groups)
	}
	slices.SortFunc(a.Groups, func(x, y *Facts) int { return cmp.Compare(x.Name, y.Name) })
	return a
}

func stranger(g *Facts, strange func(device string) string) (s Stranger, is bool) {
	for _, d := range g.Devices {
		if why := strange(d); why != "" {
			return Stranger{g.Name, g.UUID, d, why}, true
		}
	}
	return Stranger{}, false
}

// contest says why groups of one name are not used. Only an administrator who looks at their
// disks can tell which of them is to be renamed.
func contest(name string, groups []*Facts) string {
	var each []string
	for _, g := range groups {
		each = append(each, fmt.Sprintf("%s on %s with %d volumes of Berth's", g.UUID, strings.Join(g.Devices, " "), len(g.Volumes)))
	}
	slices.Sort(each)
	return fmt.Sprintf("several volume groups are named %s, and none is used: %s. "+
		"Find out which one is this node's, then take the disk of the other away, or rename the other by its UUID (vgrename UUID NEW_NAME)", name, strings.Join(each, "; "))
}

// Renamed says that a group is there under another name.
func (a Answer) Renamed(g *Facts) bool {
	return g.UUID != "" && slices.ContainsFunc(a.Groups, func(other *Facts) bool { return other.UUID == g.UUID && other.Name != g.Name })
}

// HoldsAny says whether anything of Berth's is in the group.
func (h *holdings) HoldsAny() bool { return len(h.Volumes)+len(h.Snapshots) > 0 }

// UnknownGroup returns a group of which only the name is known.
func UnknownGroup(name string) *Facts {
	return &Facts{holdings: holdingsOf(name), UUIDs: map[string]string{}}
}

// Inherit takes over from an older state of the group, nil if there is none: the tries so far,
// the status of each pool that was signalled last, and why a pool could not be activated. The
// report is the only source for a new pool.
func (g *Facts) Inherit(old *Facts) {
	g.Pools.Tell()
	if old == nil {
		return
	}
	for id, r := range g.Wiping {
		if before := old.Wiping[id]; before != nil {
			r.Tries, r.doubted = before.Tries, before.doubted
		}
	}
	for id, p := range g.Pending {
		if old.Pending[id] != nil {
			p.Tries = old.Pending[id].Tries
		}
	}
	for name, p := range g.Pools {
		if before := old.Pools[name]; before != nil {
			p.Told = before.Told
			if p.Asleep() && g.Seqno == old.Seqno {
				p.Refused, p.Tries = before.Refused, before.Tries
			}
		}
	}
}

// Outran says that an answer lacks a known own change: LVM was asked before the change, and also
// read the disks before it. Such an answer settles nothing that was due. The known number of the
// group also counts changes that others made before the own one, and those changes are not known.
func (g *Facts) Outran(answer *Facts, asked reading.Moment) bool {
	return answer.UUID == g.UUID && asked < g.Own && answer.Seqno < g.Seqno
}
