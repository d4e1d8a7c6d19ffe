package lvm

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/reading"
)

// state is what is known of all volume groups.
type state struct {
	mu     sync.Mutex
	groups map[string]*group
	// loaded is set once all groups are known by name, and mark is about which there are.
	loaded bool
	mark   reading.Mark
	clock  reading.Clock
	// strangers are groups that pods wrote.
	strangers []stranger
	// watched is set once no change by others escapes notice.
	watched bool
}

// with runs f on a group, nil if there is none, under the state's lock.
func (s *state) with(name string, f func(*group)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.groups[name])
}

// noticed notes that others may have changed a group. It is called within with.
func (s *state) noticed(g *group) { g.mark.Changed(s.clock.Now()) }

func (s *state) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[name] != nil
}

// hasPool says whether there is a group and, unless its name is empty, a thin pool
// in it.
func (s *state) hasPool(name, thin string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[name]
	return g != nil && (thin == "" || g.pools[thin] != nil)
}

// find returns the pool that holds a volume or a snapshot, and why it is of no use to know
// that if another holds it too.
func (s *state) find(id string) (pool provision.PoolRef, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// elsewhere returns why a volume cannot be in the pool it is asked for: another one has
// it, or has its source. It is called within with.
func (s *state) elsewhere(r provision.CreateRequest) error {
	for _, at := range s.holders(r.ID) {
		if at != r.Pool {
			return conflictElsewhere(r.ID, at)
		}
	}
	if err := s.twins(sourceID(r.Source)); err != nil {
		return err
	}
	for _, at := range s.holders(sourceID(r.Source)) {
		return r.Fits(at, 0)
	}
	return nil
}

// taken returns the group in which others have a logical volume of a name.
func (s *state) taken(name string) (group string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.others[name] {
			return g.name, true
		}
	}
	return "", false
}

func (s *state) pools(now time.Time) []provision.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pools []provision.Pool
	for _, g := range s.groups {
		pools = append(pools, g.pool("", now))
		for thin := range g.pools {
			pools = append(pools, g.pool(thin, now))
		}
	}
	s.markTwins(pools)
	slices.SortFunc(pools, func(a, b provision.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools
}

// devices returns the physical volumes by group.
func (s *state) devices() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	byGroup := map[string][]string{}
	for _, g := range s.groups {
		byGroup[g.name] = g.devices
	}
	return byGroup
}

// due returns the groups to be read again, or that all are. Groups that do not
// answer are left out, so that they hold up nobody; and so are those that an own
// change keeps locked, which is followed by a signal.
func (s *state) due() (names []string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.mark.Due() && g.silent == nil && g.busySince.IsZero() {
			names = append(names, g.name)
		}
	}
	return names, s.mark.Due()
}

func (s *state) silentNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		if s.groups[name].silent != nil {
			names = append(names, name)
		}
	}
	return names
}

// unread returns a group of which nothing but its name is known.
func (s *state) unread() (name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.read.IsZero() {
			return g.name, true
		}
	}
	return "", false
}

// unknown returns why nothing but its name is known of a group; nil if more is.
func (s *state) unknown(name string, now time.Time) (err error) {
	s.with(name, func(g *group) {
		if g != nil && g.read.IsZero() {
			err = g.usable("", now)
		}
	})
	return err
}

// answering returns the groups that answer, and whether that is all of them.
func (s *state) answering() (names []string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = true
	for _, g := range s.groups {
		if g.silent != nil {
			all = false
		} else if !g.missing && g.refused == "" {
			names = append(names, g.name)
		}
	}
	return names, all
}

// staleAll notes that any group may have changed, come or gone.
func (s *state) staleAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	s.mark.Changed(now)
	for _, g := range s.groups {
		g.mark.Changed(now)
	}
}

// is says whether an answer is about a group of a name, and about the one that is known.
func (s *state) is(name string, a answer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[name]
	return len(a.groups) == 1 && a.groups[0].name == name && len(a.strangers)+len(a.contested) == 0 &&
		(g == nil || g.refused == "" && (g.uuid == "" || g.uuid == a.groups[0].uuid))
}

// silence notes that LVM did not answer for a group.
func (s *state) silence(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[string]*group{}
	}
	g := s.groups[name]
	if g == nil {
		g = unknownGroup(name)
		s.groups[name] = g
	}
	g.silent = err
	s.noticed(g)
}

// silenceAll notes that LVM did not answer for any group, and says whether any is known.
func (s *state) silenceAll(err error) (known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		g.silent = err
		s.noticed(g)
	}
	return len(s.groups) > 0
}

// trouble returns why LVM does not answer, if it does not for some group.
func (s *state) trouble(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		if g := s.groups[name]; g.silent != nil || g.stuck(now) {
			return g.usable("", now)
		}
	}
	return nil
}
