package lvm

import (
	"time"

	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/reading"
)

// apply takes an answer in.
func (s *state) apply(a group.Answer, now time.Time) {
	s.Lock()
	defer s.Unlock()
	reported := map[string]bool{}
	for name, why := range a.Contested {
		reported[name] = true
		s.refuse(name, why, a.Asked)
	}
	for _, stranger := range a.Strangers {
		if g := s.Units()[stranger.Name]; g != nil && g.UUID == stranger.UUID && g.HoldsAny() {
			reported[g.Name] = true
			s.refuse(g.Name, "it is not used, since pods may write to it: "+stranger.String(), a.Asked)
		}
	}
	for _, g := range a.Groups {
		reported[g.Name] = true
		if why := s.replaced(g, a); why != "" {
			s.refuse(g.Name, why, a.Asked)
			continue
		}
		s.applyGroup(g, a.Asked, now)
	}
	if a.All {
		s.mark.Read(a.Asked)
		s.strangers = a.Strangers
		s.forget(reported, a)
	}
}

func (s *state) applyGroup(g *group.Facts, asked reading.Moment, now time.Time) {
	old := s.Units()[g.Name]
	if old != nil {
		if old.Mark.Overtaken(asked) || old.Outran(g, asked) {
			old.Read, old.Silent = now, nil
			return
		}
		g.Account, g.Own = old.Account, old.Own
	}
	g.Mark.Read(asked)
	g.Inherit(old)
	g.Read, g.Silent = now, nil
	s.Put(g.Name, g)
}

// forget drops the groups that are gone. It keeps those that hold anything of Berth's, as
// missing: they come back with their disk, and until then a caller must not take the volumes for
// deleted. A group that was renamed is dropped, since it is known by its new name.
func (s *state) forget(reported map[string]bool, a group.Answer) {
	for name, g := range s.Units() {
		switch {
		case reported[name], g.Mark.Overtaken(a.Asked):
		case !g.HoldsAny(), a.Renamed(g):
			s.Drop(name)
		default:
			g.Missing, g.Refused, g.Silent = true, "", nil
			g.Mark.Read(a.Asked)
		}
	}
}
