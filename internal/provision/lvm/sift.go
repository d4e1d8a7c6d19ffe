package lvm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision/reading"
)

// stranger is a volume group on a device that pods write to. It is neither a pool nor does it
// hold anything, and no command is ever run on it.
type stranger struct {
	name, uuid string
	// device that is none of the node's, and why it is not.
	device, why string
}

func (s stranger) String() string {
	return fmt.Sprintf("volume group %s (%s) on %s: %s", s.name, s.uuid, s.device, s.why)
}

// answer is what LVM reported.
type answer struct {
	// groups are those of the node, each with a name of its own.
	groups []*group
	// contested says why groups of a name are not believed.
	contested map[string]string
	strangers []stranger
	// all says that no other groups exist.
	all bool
	// asked is when LVM was asked.
	asked reading.Moment
}

// sift tells the groups of the node from those that pods wrote, and from those of which
// nobody can know which one is meant by their name.
func sift(read []*group, strange func(device string) string) answer {
	a := answer{contested: map[string]string{}}
	byName := map[string][]*group{}
	for _, g := range read {
		if s, is := g.stranger(strange); is {
			a.strangers = append(a.strangers, s)
			continue
		}
		byName[g.name] = append(byName[g.name], g)
	}
	for name, groups := range byName {
		if len(groups) == 1 {
			a.groups = append(a.groups, groups[0])
			continue
		}
		a.contested[name] = contest(name, groups)
	}
	slices.SortFunc(a.groups, func(x, y *group) int { return cmp.Compare(x.name, y.name) })
	return a
}

func (g *group) stranger(strange func(device string) string) (s stranger, is bool) {
	for _, d := range g.devices {
		if why := strange(d); why != "" {
			return stranger{g.name, g.uuid, d, why}, true
		}
	}
	return stranger{}, false
}

// contest says what is wrong with groups of one name. Which of them is to be renamed only a
// person can tell who looks at their disks.
func contest(name string, groups []*group) string {
	var each []string
	for _, g := range groups {
		each = append(each, fmt.Sprintf("%s on %s with %d volumes of Berth's", g.uuid, strings.Join(g.devices, " "), len(g.volumes)))
	}
	slices.Sort(each)
	return fmt.Sprintf("several volume groups are named %s, and none is used: %s. "+
		"Find out which one is this node's, then take the disk of the other away, or rename the other by its UUID (vgrename UUID NEW_NAME)", name, strings.Join(each, "; "))
}

// replaced is empty, or says that a group that is known to hold volumes has given its name to
// another, as when its disk is away and a disk of another node is there. It is called within
// with.
func (s *state) replaced(g *group, a answer) string {
	old := s.groups[g.name]
	if old == nil || old.uuid == "" || old.uuid == g.uuid || !old.holdsAny() || a.renamed(old) {
		return ""
	}
	return fmt.Sprintf("volume group %s was %s, with %d volumes of Berth's, and the one of that name on %s is %s: it is not used. "+
		"Bring the disks of the first back and rename the other by its UUID (vgrename UUID NEW_NAME); if the first is lost for good, restart Berth's agent on this node",
		g.name, old.uuid, len(old.volumes), strings.Join(g.devices, " "), g.uuid)
}

// renamed says that a group is there under another name.
func (a answer) renamed(g *group) bool {
	return g.uuid != "" && slices.ContainsFunc(a.groups, func(other *group) bool { return other.uuid == g.uuid && other.name != g.name })
}

// holdsAny says whether anything of Berth's is in the group.
func (g *group) holdsAny() bool { return len(g.volumes)+len(g.snapshots) > 0 }

// refuse notes why no group that is reported by a name is believed. What is known of the
// group stays known, and nothing changes in it. It is called within with.
func (s *state) refuse(name, why string, asked reading.Moment) {
	g := s.groups[name]
	switch {
	case g == nil:
		g = unknownGroup(name)
		s.groups[name] = g
	case g.mark.Overtaken(asked):
		return
	}
	g.refused, g.missing, g.silent = why, false, nil
	g.mark.Read(asked)
}

// refuses says whether some group is not believed.
func (s *state) refuses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.refused != "" {
			return true
		}
	}
	return false
}

// unknownGroup is a group of which nothing but the name is known.
func unknownGroup(name string) *group {
	return &group{name: name, volumes: map[string]*volume{}, snapshots: map[string]*snapshot{}, wiping: map[string]*remnant{}, uuids: map[string]string{}}
}
