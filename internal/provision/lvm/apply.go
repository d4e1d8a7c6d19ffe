package lvm

import "time"

// answer is what LVM reported.
type answer struct {
	groups []*group
	// all says that no other groups exist.
	all bool
	// turn is the state's count of own changes when LVM was asked.
	turn uint64
}

// ask begins a query of a group, or of all with an empty name: what changes from
// now on makes it stale again.
func (s *state) ask(name string) (turn uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		s.stale = false
	}
	for _, g := range s.groups {
		if name == "" || g.name == name {
			g.stale = false
		}
	}
	return s.turn
}

// apply takes an answer in.
func (s *state) apply(a answer, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[string]*group{}
	}
	reported := map[string]bool{}
	for _, g := range a.groups {
		reported[g.name] = true
		s.applyGroup(g, a.turn, now)
	}
	if a.all {
		s.loaded = true
		s.forget(reported)
	}
}

func (s *state) applyGroup(g *group, turn uint64, now time.Time) {
	old := s.groups[g.name]
	if old != nil {
		if old.uuid == g.uuid && old.turn > turn && g.seqno <= old.seqno {
			// LVM looked before the last own change, which is known already.
			old.read, old.silent = now, nil
			return
		}
		g.stale, g.busySince, g.turn = old.stale, old.busySince, old.turn
	}
	g.takeOver(old)
	g.remember(old)
	g.read = now
	s.groups[g.name] = g
}

// forget drops the groups that are gone. Those that hold anything of Berth's are kept as
// missing: a disk that comes back brings them back, and until then nobody must take
// them for deleted.
func (s *state) forget(reported map[string]bool) {
	for name, g := range s.groups {
		switch {
		case reported[name]:
		case len(g.volumes)+len(g.snapshots) == 0:
			delete(s.groups, name)
		default:
			g.missing, g.silent, g.stale = true, nil, false
		}
	}
}
