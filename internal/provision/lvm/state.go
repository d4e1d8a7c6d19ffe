package lvm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/reading"
)

// state holds the facts about all volume groups.
type state struct {
	*engine.Book[*group.Facts]
	// mark says whether the list of groups must be read again.
	mark reading.Mark
	// strangers are groups that pods wrote.
	strangers []group.Stranger
	// watched is set once no change by others escapes notice.
	watched bool
}

func (s *state) has(name string) bool {
	s.Lock()
	defer s.Unlock()
	return s.Units()[name] != nil
}

// hasPool says whether there is a group and, unless its name is empty, a thin pool
// in it.
func (s *state) hasPool(name, thin string) bool {
	s.Lock()
	defer s.Unlock()
	g := s.Units()[name]
	return g != nil && (thin == "" || g.Pools[thin] != nil)
}

// find returns the pool that holds a volume or a snapshot. err says that another pool holds it
// too, so that it cannot be used.
func (s *state) find(id string) (pool provision.PoolRef, ok bool, err error) {
	s.Lock()
	defer s.Unlock()
	if pools := s.holders(id); len(pools) > 0 {
		return pools[0], true, s.twins(id)
	}
	return provision.PoolRef{}, false, nil
}

// holds says whether a volume or a snapshot is there.
func (s *state) holds(id string) bool {
	_, ok, _ := s.find(id)
	return ok
}

// elsewhere returns why a volume cannot be in the pool it is asked for: another pool has it, or
// has its source. The caller holds the state's lock.
func (s *state) elsewhere(r provision.CreateRequest) error {
	for _, at := range s.holders(r.ID) {
		if at != r.Pool {
			return group.ConflictElsewhere(r.ID, at)
		}
	}
	if err := s.twins(group.SourceID(r.Source)); err != nil {
		return err
	}
	for _, at := range s.holders(group.SourceID(r.Source)) {
		return r.Fits(at, 0)
	}
	return nil
}

// taken returns the group that has a foreign logical volume of a name.
func (s *state) taken(name string) (group string, ok bool) {
	for _, g := range s.All() {
		if g.Others[name] {
			return g.Name, true
		}
	}
	return "", false
}

func (s *state) pools(now time.Time) []provision.Pool {
	s.Lock()
	defer s.Unlock()
	var pools []provision.Pool
	for _, g := range s.Units() {
		pools = append(pools, g.Pool("", now))
		for thin := range g.Pools {
			pools = append(pools, g.Pool(thin, now))
		}
	}
	s.markTwins(pools)
	slices.SortFunc(pools, func(a, b provision.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools
}

// devices returns the physical volumes by group.
func (s *state) devices() map[string][]string {
	byGroup := map[string][]string{}
	for _, g := range s.All() {
		byGroup[g.Name] = g.Devices
	}
	return byGroup
}

// due returns the groups to be read again. all says that all are to be read. due leaves out
// groups that do not answer, which would hold up the caller. It also leaves out groups that an
// own change has locked: a signal follows that change.
func (s *state) due() (names []string, all bool) {
	s.Lock()
	defer s.Unlock()
	for _, g := range s.Units() {
		if g.Mark.Due() && g.Silent == nil && !g.Busy() {
			names = append(names, g.Name)
		}
	}
	return names, s.mark.Due()
}

// unknown returns why only the name of a group is known; nil if more is known.
func (s *state) unknown(name string, now time.Time) (err error) {
	s.With(name, func(g *group.Facts) {
		if g != nil && g.Read.IsZero() {
			err = g.Usable("", now)
		}
	})
	return err
}

// answering returns the groups that answer, and whether that is all of them.
func (s *state) answering() (names []string, all bool) {
	all = true
	for _, g := range s.All() {
		if g.Silent != nil {
			all = false
		} else if !g.Missing && g.Refused == "" {
			names = append(names, g.Name)
		}
	}
	return names, all
}

// staleAll notes that any group may have changed, come or gone.
func (s *state) staleAll() {
	s.Lock()
	defer s.Unlock()
	now := s.Moment()
	s.mark.Changed(now)
	for _, g := range s.Units() {
		g.Mark.Changed(now)
	}
}

// is says whether an answer is about the group of a name alone, and about the known group of that
// name if there is one.
func (s *state) is(name string, a group.Answer) bool {
	s.Lock()
	defer s.Unlock()
	g := s.Units()[name]
	return len(a.Groups) == 1 && a.Groups[0].Name == name && len(a.Strangers)+len(a.Contested) == 0 &&
		(g == nil || g.Refused == "" && (g.UUID == "" || g.UUID == a.Groups[0].UUID))
}

// silence notes that LVM did not answer for a group.
func (s *state) silence(name string, err error) {
	s.Lock()
	defer s.Unlock()
	g := s.Units()[name]
	if g == nil {
		g = group.UnknownGroup(name)
		s.Put(name, g)
	}
	g.Silent = err
	s.Touch(g)
}

// silenceAll notes that LVM did not answer for any group, and says whether any is known.
func (s *state) silenceAll(err error) (known bool) {
	for _, g := range s.All() {
		g.Silent, known = err, true
		s.Touch(g)
	}
	return known
}

// trouble returns why LVM does not answer for some group; nil if it answers for all.
func (s *state) trouble(now time.Time) error {
	for _, g := range s.All() {
		if g.Silent != nil || g.Stuck(now) {
			return g.Usable("", now)
		}
	}
	return nil
}

// wipes says whether deleting a volume or a snapshot leaves something to be wiped.
func (p *wiper) wipes(name, id string) (wipes bool) {
	p.state.With(name, func(g *group.Facts) {
		if g != nil && g.Find(id) != nil {
			wipes = g.Find(id).Pool == "" && g.Find(id).Wipe != provision.WipeNone
		}
	})
	return wipes
}

// left says whether a deleted volume or snapshot is being wiped, and no other of its id is
// there.
func (p *wiper) left(id string) (left bool) {
	p.state.Lock()
	defer p.state.Unlock()
	for _, g := range p.state.Units() {
		if g.Find(id) != nil {
			return false
		}
		left = left || g.Wiping[id] != nil
	}
	return left
}

// replaced is empty, or says that a group that is known to hold volumes has lost its name to
// another group, for example because its disk is away and a disk of another node is there. The
// caller holds the state's lock.
func (s *state) replaced(g *group.Facts, a group.Answer) string {
	old := s.Units()[g.Name]
	if old == nil || old.UUID == "" || old.UUID == g.UUID || !old.HoldsAny() || a.Renamed(old) {
		return ""
	}
	return fmt.Sprintf("volume group %s was %s, with %d volumes of Berth's, and the one of that name on %s is %s: it is not used. "+
		"Bring the disks of the first back and rename the other by its UUID (vgrename UUID NEW_NAME); if the first is lost for good, restart Berth's agent on this node",
		g.Name, old.UUID, len(old.Volumes), strings.Join(g.Devices, " "), g.UUID)
}

// refuse notes why Berth uses no group that LVM reports by a name. The facts about the known
// group stay, and Berth changes nothing in it. The caller holds the state's lock.
func (s *state) refuse(name, why string, asked reading.Moment) {
	g := s.Units()[name]
	switch {
	case g == nil:
		g = group.UnknownGroup(name)
		s.Put(name, g)
	case g.Mark.Overtaken(asked):
		return
	}
	g.Refused, g.Missing, g.Silent = why, false, nil
	g.Mark.Read(asked)
}

// some says whether one of the groups is as asked.
func (s *state) some(is func(*group.Facts) bool) bool {
	s.Lock()
	defer s.Unlock()
	for _, g := range s.Units() {
		if is(g) {
			return true
		}
	}
	return false
}
