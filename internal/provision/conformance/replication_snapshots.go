package conformance

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
)

func snapshotsStay(p *pair) {
	p.copied()
	p.a.write("third")
	take := func() error {
		return p.a.r.Snapshot(p.t.Context(), provision.PointRequest{Volume: id(1), Point: point(one, 3), Snapshot: snapshotID(1)})
	}
	must(p.t, "taking a CSI snapshot", take())
	must(p.t, "taking it again", take())
	p.a.take(point(one, 4))
	wants(p.t, "the same snapshot at another point", p.a.r.Snapshot(p.t.Context(), provision.PointRequest{Volume: id(1), Point: point(one, 5), Snapshot: snapshotID(1)}), provision.ErrConflict)
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	must(p.t, "receiving", p.b.receive(h, stream))
	h, stream = p.a.stream(point(one, 3), point(one, 4))
	must(p.t, "receiving the next", p.b.receive(h, stream))
	for _, s := range []side{p.a, p.b} {
		if at := s.state().Snapshots[snapshotID(1)]; at != point(one, 3) {
			p.t.Errorf("the snapshot is point %v", at)
		}
		if held := s.state().Holds; len(held) != 1 || held[0].Until != provision.NoEnd {
			p.t.Errorf("the rules see %v", held)
		}
		s.Pass(1000 * provision.MaxHold)
		drop := func() error { return s.r.Drop(p.t.Context(), id(1), []lineage.Point{point(one, 3)}) }
		wants(p.t, "dropping it with the others", drop(), provision.ErrInUse)
		must(p.t, "deleting the snapshot", s.r.Release(p.t.Context(), id(1), snapshotID(1), point(one, 3)))
		must(p.t, "dropping", drop())
	}
}

func snapshotsSurviveFull(p *pair) {
	p.copied()
	p.a.take(point(one, 3))
	must(p.t, "taking a CSI snapshot", p.a.r.Snapshot(p.t.Context(), provision.PointRequest{Volume: id(1), Point: point(one, 4), Snapshot: snapshotID(1)}))
	p.a.take(point(one, 5))
	h, stream := p.a.stream(point(one, 2), point(one, 4))
	must(p.t, "receiving", p.b.receive(h, stream))
	h, stream = p.a.stream(none, point(one, 5))
	must(p.t, "receiving in full", p.b.receive(h, stream))
	p.b.has(point(one, 5))
	p.restart()
	if s := p.b.state(); s.Snapshots[snapshotID(1)] != point(one, 4) || len(s.Branches) > 0 {
		p.t.Errorf("the copy is %+v", s)
	}
	must(p.t, "deleting the snapshot", p.b.r.Release(p.t.Context(), id(1), snapshotID(1), point(one, 4)))
	if s := p.b.state(); len(s.Snapshots) > 0 {
		p.t.Errorf("the copy is %+v", s)
	}
}
