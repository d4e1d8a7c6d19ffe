package oracle

import (
	"fmt"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// How changes reach the schedulers: each kind of object by a watch of its own.

// apply tells a scheduler of one change.
func (s *scheduler) apply(e event) error {
	l, m := s.ledger, s.model
	switch o := e.object.(type) {
	case nil:
		s.gone(e)
	case ledger.Report:
		if err := l.ObserveNode(o); err != nil {
			return err
		}
		m.ObserveNode(o)
	case ledger.Class:
		if err := l.ObserveClass(o); err != nil {
			return err
		}
		m.ObserveClass(o)
	case ledger.VolumeObject:
		l.ObserveVolume(o)
		m.ObserveVolume(o)
	case ledger.ClaimObject:
		l.ObserveClaim(o)
		m.ObserveClaim(o)
	case ledger.PVObject:
		l.ObservePV(o)
		m.ObservePV(o)
	case ledger.PodObject:
		l.ObservePod(o)
		m.ObservePod(o)
	default:
		return fmt.Errorf("event with %T", o)
	}
	return s.check()
}

func (s *scheduler) gone(e event) {
	l, m := s.ledger, s.model
	switch e.kind {
	case reports:
		l.ObserveNodeGone(e.key)
		m.ObserveNodeGone(e.key)
	case classes:
		l.ObserveClassGone(e.key)
		m.ObserveClassGone(e.key)
	case volumes:
		l.ObserveVolumeGone(e.key, e.revision)
		m.ObserveVolumeGone(e.key, e.revision)
	case claims:
		l.ObserveClaimGone(e.key)
		m.ObserveClaimGone(e.key)
	case pvs:
		l.ObservePVGone(e.key)
		m.ObservePVGone(e.key)
	case pods:
		l.ObservePodGone(e.key)
		m.ObservePodGone(e.key)
	}
}

// delivers brings a scheduler the next few changes of one kind.
func (w *world) delivers(a, b, c byte) error {
	s, k := w.schedulers[int(a)%len(w.schedulers)], kind(b)%kinds
	for range c%8 + 1 {
		if s.cursor[k] == len(w.log[k]) {
			break
		}
		e := w.log[k][s.cursor[k]]
		s.cursor[k]++
		w.trace("  seen: %s %s at %d (gone %t)", kindNames[k], e.key, e.revision, e.object == nil)
		if err := s.apply(e); err != nil {
			return err
		}
	}
	return nil
}

// catchesUp brings a scheduler everything of every kind.
func (w *world) catchesUp(s *scheduler, first byte) error {
	for i := range kinds {
		k := (kind(first) + i) % kinds
		for ; s.cursor[k] < len(w.log[k]); s.cursor[k]++ {
			if err := s.apply(w.log[k][s.cursor[k]]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) delivered(a, b, _ byte) error {
	return w.catchesUp(w.schedulers[int(a)%len(w.schedulers)], b)
}

// repeats brings the last change of a kind once more.
func (w *world) repeats(a, b, _ byte) error {
	s, k := w.schedulers[int(a)%len(w.schedulers)], kind(b)%kinds
	if s.cursor[k] == 0 {
		return nil
	}
	w.trace("  seen again: %s", kindNames[k])
	return s.apply(w.log[k][s.cursor[k]-1])
}

// latest is the state of a kind: the last event of each key, in the order of the
// keys, and the keys that are gone.
func (w *world) latest(k kind, from int) (objects, gone []event) {
	last := map[string]event{}
	for _, e := range w.log[k][from:] {
		last[e.key] = e
	}
	for _, key := range sortedKeys(last) {
		if last[key].object == nil {
			gone = append(gone, last[key])
		} else {
			objects = append(objects, last[key])
		}
	}
	return objects, gone
}

// relists makes a scheduler miss changes and see only their outcome: deletions
// come as tombstones, of which only the name is certain.
func (w *world) relists(a, b, c byte) error {
	s, k := w.schedulers[int(a)%len(w.schedulers)], kind(b)%kinds
	objects, gone := w.latest(k, s.cursor[k])
	s.cursor[k] = len(w.log[k])
	w.trace("  relisted: %s, %d changed, %d gone", kindNames[k], len(objects), len(gone))
	for _, e := range slices.Concat(objects, gone) {
		if c%2 == 0 && e.object == nil {
			e.revision = 0
		}
		if err := s.apply(e); err != nil {
			return err
		}
	}
	return nil
}

// restarts kills a scheduler. The next one knows only the objects that it lists,
// kind by kind in any order, and answers nothing before it has listed everything.
func (w *world) restarts(a, b, _ byte) error {
	i := int(a) % len(w.schedulers)
	w.trace("the scheduler %d restarts", i)
	for _, x := range w.schedulers[i].cycles {
		x.pod.cycle = false
	}
	s := newScheduler()
	w.schedulers[i] = s
	return w.lists(s, b)
}

func (w *world) lists(s *scheduler, first byte) error {
	for i := range kinds {
		k := (kind(first) + i) % kinds
		objects, _ := w.latest(k, 0)
		for _, e := range objects {
			if err := s.apply(e); err != nil {
				return err
			}
		}
		s.cursor[k] = len(w.log[k])
	}
	s.ledger.SetSynced()
	return s.check()
}
