package conformance

import (
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

func noCopyYet(p *pair) {
	a := p.a.made()
	if s := a.state(); s.Exists || s.Writable || s.Receiving != nil || s.Size < a.size() {
		p.t.Errorf("a new volume is %+v", s)
	}
	must(p.t, "aborting", a.r.Abort(p.t.Context(), id(1)))
	must(p.t, "dropping", a.r.Drop(p.t.Context(), id(1), []lineage.Point{point(one, 1)}))
	must(p.t, "releasing", a.r.Release(p.t.Context(), id(1), "node-2", point(one, 1)))
	must(p.t, "forgetting", a.r.Forget(p.t.Context(), id(1), point(one, 1)))
	wants(p.t, "rolling back", a.r.RollBack(p.t.Context(), id(1), point(one, 1)), provision.ErrNotFound)
	wants(p.t, "holding", a.r.Hold(p.t.Context(), id(1), ownership.Hold{For: "node-2", Point: point(one, 1), Until: a.Now().Add(time.Hour)}), provision.ErrNotFound)
	_, err := a.r.Writable(p.t.Context(), id(1))
	wants(p.t, "making it writable", err, provision.ErrConflict)
	wants(p.t, "taking a point", a.r.Snapshot(p.t.Context(), provision.PointRequest{Volume: id(1), Point: point(one, 1)}), provision.ErrConflict)
	if v, err := a.Get(p.t.Context(), id(1)); err != nil || v.Problem != "" || a.state().Exists {
		p.t.Errorf("it became a copy: %+v, %v", v, err)
	}
	_, err = a.r.State(p.t.Context(), id(2))
	wants(p.t, "asking for another", err, provision.ErrNotFound)
	wants(p.t, "marking another", a.r.Mark(p.t.Context(), id(2), provision.Mark{Promise: promiseOne}), provision.ErrNotFound)
}

func marksStay(p *pair) {
	a := p.a.made()
	mark := func(m provision.Mark) error { return a.r.Mark(p.t.Context(), id(1), m) }
	must(p.t, "promising", mark(provision.Mark{Promise: promiseTwo}))
	must(p.t, "opening", mark(provision.Mark{Opened: two}))
	must(p.t, "closing", mark(provision.Mark{Closed: two}))
	must(p.t, "closing again", mark(provision.Mark{Closed: two}))
	wants(p.t, "opening an older epoch", mark(provision.Mark{Opened: one}), provision.ErrConflict)
	wants(p.t, "closing an older epoch", mark(provision.Mark{Closed: one}), provision.ErrConflict)
	wants(p.t, "closing a rival", mark(provision.Mark{Closed: lineage.Epoch{Number: 2, ID: "rival"}}), provision.ErrConflict)
	wants(p.t, "a mark without a lineage", mark(provision.Mark{Promise: ownership.Promise{Epoch: three}}), provision.ErrInvalid)
	wants(p.t, "a strange id", mark(provision.Mark{Closed: lineage.Epoch{Number: 9, ID: "../x"}}), provision.ErrInvalid)
	at := time.Unix(2e9, 0).UTC()
	must(p.t, "condemning", mark(provision.Mark{Fate: &provision.Fate{Condemned: true, DestroyAt: at}}))
	p.restart()
	got := p.a.state().Copy
	want := ownership.Copy{Exists: true, Size: got.Size, Promise: promiseTwo, Opened: two, Closed: two, Condemned: true, DestroyAt: at}
	got.Dirty = false // nothing was written, but a backend need not know that
	if diff := gocmp.Diff(want, got); diff != "" {
		p.t.Errorf("the record changed (-want +got):\n%s", diff)
	}
	must(p.t, "believing an older record", p.a.r.Mark(p.t.Context(), id(1), provision.Mark{Promise: promiseOne, Fate: &provision.Fate{}}))
	if s := p.a.state(); s.Promise.Epoch != one || s.Condemned || s.Opened != two {
		p.t.Errorf("the record is %+v", s.Copy)
	}
}

func pointsGrow(p *pair) {
	a := p.a.made()
	a.primary(promiseOne)
	a.write("first")
	snapshot := func(at lineage.Point) error {
		return a.r.Snapshot(p.t.Context(), provision.PointRequest{Volume: id(1), Point: at})
	}
	must(p.t, "a point", snapshot(point(one, 2)))
	must(p.t, "the same again", snapshot(point(one, 2)))
	wants(p.t, "an older one", snapshot(point(one, 1)), provision.ErrConflict)
	wants(p.t, "another with its number", snapshot(point(two, 2)), provision.ErrConflict)
	wants(p.t, "no point", snapshot(lineage.Point{}), provision.ErrInvalid)
	must(p.t, "a newer one", snapshot(point(one, 3)))
	p.restart()
	p.a.has(point(one, 2), point(one, 3))
	p.a.holds("first")
}

func headIsDirty(p *pair) {
	a := p.a.made()
	a.primary(promiseOne)
	a.write("first")
	if !a.state().Dirty {
		p.t.Error("a head with writes that are in no point is not dirty")
	}
	a.take(point(one, 1))
	if a.state().Dirty {
		p.t.Error("a head is dirty although a point has all writes")
	}
	a.write("second")
	if !a.state().Dirty {
		p.t.Error("a head with a later write is not dirty")
	}
	p.restart()
	if !p.a.state().Dirty {
		p.t.Error("a new process takes the head for clean")
	}
}

func keepsBranches(p *pair) {
	p.copied()
	p.a.write("unsent")
	p.a.take(point(one, 3))
	p.a.closes(one)
	must(p.t, "preserving", p.a.r.Preserve(p.t.Context(), id(1), point(one, 2)))
	must(p.t, "preserving again", p.a.r.Preserve(p.t.Context(), id(1), point(one, 2)))
	must(p.t, "rolling back", p.a.r.RollBack(p.t.Context(), id(1), point(one, 2)))
	p.a.has(point(one, 1), point(one, 2))
	p.restart()
	branch := provision.KeptBranch{Tip: point(one, 3), From: point(one, 2)}
	if s := p.a.state(); len(s.Branches) != 1 || s.Branches[0] != branch || s.Preserved != branch.Tip || s.Dirty {
		p.t.Errorf("the copy is %+v", s)
	}
	p.b.primary(promiseTwo)
	p.b.write("other")
	p.b.take(point(two, 3))
	h, stream := p.b.stream(point(one, 2), point(two, 3))
	must(p.t, "following the new primary", p.a.receive(h, stream))
	p.a.has(point(one, 1), point(one, 2), point(two, 3))
	if s := p.a.state(); len(s.Branches) != 1 || s.Promise.Epoch != two {
		p.t.Errorf("the copy is %+v", s)
	}
	must(p.t, "forgetting", p.a.r.Forget(p.t.Context(), id(1), branch.Tip))
	must(p.t, "forgetting again", p.a.r.Forget(p.t.Context(), id(1), branch.Tip))
	if s := p.a.state(); len(s.Branches) != 0 {
		p.t.Errorf("the copy is %+v", s)
	}
	p.a.primary(promiseThree)
	p.a.holds("other")
}

func rollsBackNothingUnkept(p *pair) {
	a := p.a.made()
	a.primary(promiseOne)
	a.write("first")
	a.take(point(one, 1))
	a.write("second")
	a.take(point(one, 2))
	rollBack := func(to lineage.Point) error { return a.r.RollBack(p.t.Context(), id(1), to) }
	wants(p.t, "rolling back an open copy", rollBack(point(one, 1)), provision.ErrConflict)
	a.closes(one)
	wants(p.t, "rolling back what is in no branch", rollBack(point(one, 1)), provision.ErrConflict)
	wants(p.t, "rolling back to a point that is not held", rollBack(point(one, 7)), provision.ErrNotFound)
	must(p.t, "rolling back to the newest point", rollBack(point(one, 2)))
	must(p.t, "preserving", a.r.Preserve(p.t.Context(), id(1), point(one, 1)))
	must(p.t, "rolling back", rollBack(point(one, 1)))
	wants(p.t, "taking a point that a branch has", a.r.Snapshot(p.t.Context(), provision.PointRequest{Volume: id(1), Point: point(one, 2)}), provision.ErrConflict)
	a.primary(promise(lineage.Branch{Epoch: one}, lineage.Branch{Epoch: two, From: point(one, 1)}))
	a.holds("first")
	a.write("dirty")
	a.closes(two)
	wants(p.t, "rolling back a dirty head", rollBack(point(one, 1)), provision.ErrConflict)
	wants(p.t, "preserving a dirty head", a.r.Preserve(p.t.Context(), id(1), lineage.Point{}), provision.ErrConflict)
	a.has(point(one, 1))
}

func dropsOnlyUnneeded(p *pair) {
	a := p.a.made()
	a.primary(promiseOne)
	for seq := range uint64(4) {
		a.take(point(one, seq+1))
	}
	drop := func(points ...lineage.Point) error { return a.r.Drop(p.t.Context(), id(1), points) }
	must(p.t, "holding", a.r.Hold(p.t.Context(), id(1), ownership.Hold{For: "node-2", Point: point(one, 2), Until: a.Now().Add(time.Hour)}))
	wants(p.t, "dropping the newest", drop(point(one, 1), point(one, 4)), provision.ErrInUse)
	wants(p.t, "dropping a held one", drop(point(one, 2)), provision.ErrInUse)
	a.has(point(one, 1), point(one, 2), point(one, 3), point(one, 4))
	must(p.t, "dropping", drop(point(one, 1), point(one, 3), point(two, 9)))
	p.restart()
	a = p.a
	a.has(point(one, 2), point(one, 4))
	wants(p.t, "dropping a held one later", drop(point(one, 2)), provision.ErrInUse)
	must(p.t, "releasing another's", a.r.Release(p.t.Context(), id(1), "node-3", point(one, 2)))
	wants(p.t, "dropping what is still held", drop(point(one, 2)), provision.ErrInUse)
	must(p.t, "releasing", a.r.Release(p.t.Context(), id(1), "node-2", point(one, 2)))
	must(p.t, "dropping", drop(point(one, 2)))
	a.has(point(one, 4))
}

func holdsEnd(p *pair) {
	a := p.a.made()
	a.primary(promiseOne)
	a.take(point(one, 1))
	a.take(point(one, 2))
	hold := func(owner string, at lineage.Point, d time.Duration) error {
		return a.r.Hold(p.t.Context(), id(1), ownership.Hold{For: owner, Point: at, Until: a.Now().Add(d)})
	}
	wants(p.t, "a hold for too long", hold("node-2", point(one, 1), provision.MaxHold+time.Minute), provision.ErrInvalid)
	wants(p.t, "a hold that is over", hold("node-2", point(one, 1), 0), provision.ErrInvalid)
	wants(p.t, "a hold of nobody", hold("", point(one, 1), time.Hour), provision.ErrInvalid)
	wants(p.t, "a hold of no point", hold("node-2", point(one, 9), time.Hour), provision.ErrNotFound)
	must(p.t, "a hold", hold("node-2", point(one, 1), time.Minute))
	must(p.t, "the same for longer", hold("node-2", point(one, 1), time.Hour))
	if s := a.state(); len(s.Holds) != 1 {
		p.t.Errorf("there are %d holds", len(s.Holds))
	}
	for n := 1; n < provision.MaxHolds; n++ {
		must(p.t, "one more hold", hold("owner-"+string(rune('0'+n)), point(one, 1), time.Minute))
	}
	wants(p.t, "one hold too many", hold("node-9", point(one, 1), time.Minute), provision.ErrNoSpace)
	a.Pass(2 * time.Minute)
	must(p.t, "a hold when others ended", hold("node-9", point(one, 1), time.Minute))
	wants(p.t, "dropping", a.r.Drop(p.t.Context(), id(1), []lineage.Point{point(one, 1)}), provision.ErrInUse)
	for n := uint64(3); n <= 5; n++ {
		a.take(point(one, n))
		must(p.t, "a hold of a newer point", hold("node-2", point(one, n), time.Hour))
	}
	if s := a.state(); slices.ContainsFunc(s.Holds, func(h ownership.Hold) bool { return h.For == "node-2" && h.Point == point(one, 1) }) {
		p.t.Errorf("an owner of holds of three newer points keeps the oldest: %+v", s.Holds)
	}
	a.Pass(time.Hour)
	must(p.t, "dropping when all holds ended", a.r.Drop(p.t.Context(), id(1), []lineage.Point{point(one, 1)}))
}
