package explore

// plot draws the events of one story that plain dice hardly ever tell to its end: a node comes to
// own the volume, sleeps or loses its agent at any moment on the way, is fenced and replaced, the next owner writes and
// lets go, and the node wakes. In some, the node joined late, and a backup of the record does not know it. A schedule with a plot mixes its events with those of the dice.
func (s Source) plot(w *World) (Event, bool) {
	v := w.server.current.volume
	if s.victim < 0 || s.victim >= w.cfg.Nodes || v == nil || s.r.IntN(6) == 0 || v.Deleting {
		return Event{}, false
	}
	n, me := &w.nodes[s.victim], uint8(s.victim)
	owns := v.Primary.Node == names[s.victim] && v.Primary.Phase.Open()
	told := !owns && len(w.truth.issued) > 2
	_, counted := v.Replica(names[s.victim])
	switch late := s.victim == w.cfg.Factor; {
	case late && !counted && !w.truth.restored && v.Factor == w.cfg.Factor:
		return Event{Kind: factors, A: me + 1}, true // the node joins late
	case late && !counted && !w.truth.restored:
		return s.anyOf(s.controls(), Event{Kind: agentSteps, A: me}, Event{Kind: agentSteps}), true
	case late && told && !w.truth.restored && s.r.IntN(12) == 0:
		return Event{Kind: restores, A: uint8(6 + s.r.IntN(12))}, true // and a backup does not know it
	case !n.up:
		return Event{Kind: boots, A: me}, true
	case !n.paused && told && s.r.IntN(3) > 0:
		return Event{}, false // told, and perhaps once more
	case !n.paused && !n.wanted:
		return Event{Kind: wants, A: me}, true
	case !n.paused && owns && s.r.IntN(8) == 0:
		return Event{Kind: pauses, A: me}, true
	case !n.paused:
		return s.anyOf(Event{Kind: agentSteps, A: me}, Event{Kind: agentSteps, A: me}, Event{Kind: appWrites, A: me},
			Event{Kind: attaches, A: me}, Event{Kind: delivers}, s.controls()), true
	case owns:
		return s.anyOf(Event{Kind: ticksBy}, s.controls(), s.controls(), Event{Kind: agentSteps, A: s.other(w)}, Event{Kind: delivers}), true
	case s.r.IntN(40) == 0:
		return Event{Kind: resumes, A: me}, true
	}
	return s.heir(w), true
}

// heir draws an event of the node that comes after the victim.
func (s Source) heir(w *World) Event {
	for i := range w.cfg.Nodes {
		o := &w.nodes[i]
		if i == s.victim || !o.wanted && !o.mounted {
			continue
		}
		if o.mounted && s.r.IntN(6) == 0 {
			return Event{Kind: unwants, A: uint8(i)}
		}
		return s.anyOf(Event{Kind: agentSteps, A: uint8(i)}, Event{Kind: agentSteps, A: uint8(i)}, Event{Kind: appWrites, A: uint8(i)},
			Event{Kind: attaches, A: uint8(i)}, s.controls(), Event{Kind: agentSteps, A: s.other(w)})
	}
	return s.anyOf(Event{Kind: wants, A: s.other(w)}, Event{Kind: agentSteps, A: s.other(w)})
}

func (s Source) controls() Event {
	return Event{Kind: controllerSteps, A: uint8(s.r.IntN(controllers))}
}

func (s Source) anyOf(events ...Event) Event { return events[s.r.IntN(len(events))] }

// other is a node that is not the victim.
func (s Source) other(w *World) uint8 {
	return uint8((s.victim + 1 + s.r.IntN(w.cfg.Nodes-1)) % w.cfg.Nodes)
}
