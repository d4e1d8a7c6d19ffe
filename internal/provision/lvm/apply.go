package lvm

import (
	"time"

	"berth.dev/berth/internal/provision/reading"
)

// ask begins a query. Whatever was due before is due until its answer was taken in.
func (s *state) ask() reading.Moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Now()
}

// apply takes an answer in.
func (s *state) apply(a answer, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[string]*group{}
	}
	reported := map[string]bool{}
	for name, why := range a.contested {
		reported[name] = true
		s.refuse(name, why, a.asked)
	}
	for _, stranger := range a.strangers {
		if g := s.groups[stranger.name]; g != nil && g.uuid == stranger.uuid && g.holdsAny() {
			reported[g.name] = true
			s.refuse(g.name, "it is not used, since pods may write to it: "+stranger.String(), a.asked)
		}
	}
	for _, g := range a.groups {
		reported[g.name] = true
		if why := s.replaced(g, a); why != "" {
			s.refuse(g.name, why, a.asked)
			continue
		}
		s.applyGroup(g, a.asked, now)
	}
	if a.all {
		s.loaded = true
		s.mark.Read(a.asked)
		s.strangers = a.strangers
		s.forget(reported, a)
	}
}

func (s *state) applyGroup(g *group, asked reading.Moment, now time.Time) {
	old := s.groups[g.name]
	if old != nil {
		if old.mark.Overtaken(asked) || old.outran(g, asked) {
			old.read, old.silent = now, nil
			return
		}
		g.mark, g.busySince, g.own = old.mark, old.busySince, old.own
	}
	g.mark.Read(asked)
	g.takeOver(old)
	g.remember(old)
	g.read = now
	s.groups[g.name] = g
}

// outran says that an answer lacks an own change that is known: LVM was asked before it,
// and looked before it too. Nothing that was due is settled by such an answer: the group's
// number as it is known counts what others did before the own change, and what that was
// is not known.
func (g *group) outran(answer *group, asked reading.Moment) bool {
	return answer.uuid == g.uuid && asked < g.own && answer.seqno < g.seqno
}

// forget drops the groups that are gone. Those that hold anything of Berth's are kept as
// missing: a disk that comes back brings them back, and until then nobody must take
// them for deleted. One that has another name now is not gone.
func (s *state) forget(reported map[string]bool, a answer) {
	for name, g := range s.groups {
		switch {
		case reported[name], g.mark.Overtaken(a.asked):
		case !g.holdsAny(), a.renamed(g):
			delete(s.groups, name)
		default:
			g.missing, g.refused, g.silent = true, "", nil
			g.mark.Read(a.asked)
		}
	}
}
