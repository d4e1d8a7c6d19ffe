package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// Mark returns the record with some parts replaced. The head of a volume that was no copy counts
// from then on.
func (r Record) Mark(m provision.Mark, now time.Time) (Record, error) {
	if err := m.Check(); err != nil {
		return r, err
	}
	n := r.fresh(now)
	n.Live, n.Exists = r.Live || !r.Exists, true
	if !m.Promise.Epoch.IsZero() {
		n.Promise = m.Promise
	}
	for _, e := range []struct {
		now *lineage.Epoch
		to  lineage.Epoch
	}{{&n.Opened, m.Opened}, {&n.Closed, m.Closed}} {
		switch {
		case e.to.IsZero() || e.to == *e.now:
		case e.to.Number <= e.now.Number:
			return r, fmt.Errorf("%w: the copy was opened or closed in epoch %v already, which is not before %v", provision.ErrConflict, *e.now, e.to)
		default:
			*e.now = e.to
		}
	}
	if m.Fate != nil {
		n.Fate = *m.Fate
	}
	return n, nil
}

// Snapshot returns the record with a new point in a place. met says that the point is held already.
func (r Record) Snapshot(q provision.PointRequest, place uint64, now time.Time) (n Record, met bool, err error) {
	if err := q.Check(); err != nil {
		return r, false, err
	}
	tip, _ := r.Tip()
	_, held := r.Place(q.Point)
	branch := slices.ContainsFunc(r.Branches, func(b Branch) bool { return b.Tip == q.Point })
	switch {
	case held && (q.Snapshot == "" || r.Snapshots[q.Snapshot] == q.Point):
		return r, true, nil
	case held || r.Snapshots[q.Snapshot] != (lineage.Point{}):
		return r, false, fmt.Errorf("%w: point %v or snapshot %s of volume %s exists without the other", provision.ErrConflict, q.Point, q.Snapshot, q.Volume)
	case !r.Exists:
		return r, false, fmt.Errorf("%w: volume %s is no copy: mark it first", provision.ErrConflict, q.Volume)
	case !r.Live:
		return r, false, fmt.Errorf("%w: the head of volume %s does not follow its newest point", provision.ErrConflict, q.Volume)
	case q.Point.Seq <= tip.Seq || branch:
		return r, false, fmt.Errorf("%w: point %v of volume %s is not newer than %v", provision.ErrConflict, q.Point, q.Volume, tip.Point)
	case len(r.Points) >= provision.MaxPoints:
		return r, false, fmt.Errorf("%w: volume %s has %d points already", provision.ErrNoSpace, q.Volume, len(r.Points))
	}
	n = r.fresh(now)
	n.Points, n.Last = append(n.Points, Point{q.Point, place}), max(n.Last, place)
	keep(&n, q.Point, q.Snapshot)
	return n, false, roomy(n)
}

// The room of a record has three shares, so that none runs out because of another: one for the promise, since a node must
// always be able to give an epoch up; one for points and holds, since the last writes of a pod must become a point; and
// one for branches, which stay for as long as their copy.
const share = longest / 3

// roomy returns ErrNoSpace if points and holds take more than their share of the record.
func roomy(r Record) error {
	r.Promise, r.Branches = ownership.Promise{}, nil
	return shared(r, "point or hold")
}

// aside returns ErrNoSpace if branches take more than their share of the record.
func aside(r Record) error { return shared(Record{Branches: r.Branches}, "branch") }

// shared returns ErrNoSpace if a part of a record is longer than a share.
func shared(part Record, another string) error {
	_, err := within(part, share)
	if errors.Is(err, provision.ErrNoSpace) {
		err = fmt.Errorf("%w: the record of the copy has no room for another %s", provision.ErrNoSpace, another)
	}
	return err
}

// keep notes that a point is a CSI snapshot.
func keep(r *Record, p lineage.Point, snapshots ...string) {
	for _, id := range snapshots {
		if id == "" {
			continue
		}
		if r.Snapshots == nil {
			r.Snapshots = map[string]lineage.Point{}
		}
		r.Snapshots[id] = p
	}
}

// RollBack returns the record without the points after one. The newest point must be preserved,
// unless it is that one.
func (r Record) RollBack(to lineage.Point, dirty bool, now time.Time) (Record, error) {
	tip, _ := r.Tip()
	i := slices.IndexFunc(r.Points, func(p Point) bool { return p.Point == to })
	switch {
	case i < 0:
		return r, fmt.Errorf("%w: point %v", provision.ErrNotFound, to)
	case dirty && r.Live:
		return r, fmt.Errorf("%w: the head holds writes that are in no point", provision.ErrConflict)
	case r.Live && r.mayWrite() == nil:
		return r, fmt.Errorf("%w: the copy is open for writing in epoch %v", provision.ErrConflict, r.Opened)
	case tip.Point != to && !slices.ContainsFunc(r.Branches, func(b Branch) bool { return b.Tip == tip.Point && !b.Snapshot }):
		return r, fmt.Errorf("%w: point %v is in no branch yet", provision.ErrConflict, tip.Point)
	}
	n := r.fresh(now)
	n.Points, n.Live = n.Points[:i+1], false
	strip(&n, r)
	return n, nil
}

// strip removes the holds of points that are not held any more. A point that is a CSI snapshot keeps
// its place: snapshots go by their own objects, and not with the other points.
func strip(r *Record, before Record) {
	r.Holds = slices.DeleteFunc(r.Holds, func(h ownership.Hold) bool {
		_, held := r.Place(h.Point)
		return !held
	})
	for _, p := range r.Snapshots {
		place, _ := before.Place(p)
		if _, held := r.Place(p); !held && !slices.ContainsFunc(r.Branches, func(b Branch) bool { return b.Tip == p }) {
			r.Branches = append(r.Branches, Branch{KeptBranch: provision.KeptBranch{Tip: p}, Place: place, Snapshot: true})
		}
	}
}

// Preserve returns the record with the newest point put aside as a branch.
func (r Record) Preserve(common lineage.Point, dirty bool, now time.Time) (Record, error) {
	tip, ok := r.Tip()
	switch _, held := r.Place(common); {
	case !ok:
		return r, fmt.Errorf("%w: the copy has no point", provision.ErrNotFound)
	case dirty && r.Live:
		return r, fmt.Errorf("%w: the head holds writes that are in no point", provision.ErrConflict)
	case !common.IsZero() && !held:
		return r, fmt.Errorf("%w: point %v", provision.ErrNotFound, common)
	}
	n := r.fresh(now)
	n.Preserved = tip.Point
	i := slices.IndexFunc(n.Branches, func(b Branch) bool { return b.Tip == tip.Point })
	if i < 0 {
		i = len(n.Branches)
		n.Branches = append(n.Branches, Branch{})
	}
	if n.Branches[i].Snapshot || n.Branches[i].Tip.IsZero() {
		n.Branches[i] = Branch{KeptBranch: provision.KeptBranch{Tip: tip.Point, From: common}, Place: tip.Place}
	}
	return n, aside(n)
}

// Forget returns the record without a branch.
func (r Record) Forget(tip lineage.Point, now time.Time) Record {
	n := r.fresh(now)
	for i := range n.Branches {
		n.Branches[i].Snapshot = n.Branches[i].Snapshot || n.Branches[i].Tip == tip
	}
	release(&n)
	return n
}

// release removes what was kept only as a CSI snapshot, and is none any more.
func release(r *Record) {
	r.Branches = slices.DeleteFunc(r.Branches, func(b Branch) bool {
		for _, p := range r.Snapshots {
			if p == b.Tip {
				return false
			}
		}
		return b.Snapshot
	})
}

// Drop returns the record without some points. sending are those that streams under way read.
func (r Record) Drop(points, sending []lineage.Point, now time.Time) (Record, error) {
	n := r.fresh(now)
	c := n.Copy(false)
	for _, p := range points {
		held := slices.ContainsFunc(c.Holds, func(h ownership.Hold) bool { return h.Point == p })
		base := r.Receiving != nil && r.Receiving.Base == p
		if c.Has(p) && (c.Tip() == p || held || base || slices.Contains(sending, p)) {
			return r, fmt.Errorf("%w: point %v is the newest one, held, or part of a stream", provision.ErrInUse, p)
		}
	}
	n.Points = slices.DeleteFunc(n.Points, func(p Point) bool { return slices.Contains(points, p.Point) })
	return n, nil
}

// Hold returns the record with a hold, or with another deadline for it: see ownership.WithHold.
func (r Record) Hold(h ownership.Hold, now time.Time) (Record, error) {
	n := r.fresh(now)
	if _, held := r.Place(h.Point); !held {
		return r, fmt.Errorf("%w: point %v", provision.ErrNotFound, h.Point)
	}
	if h.For == "" || len(h.For) > 253 || strings.ContainsFunc(h.For, func(c rune) bool { return c <= ' ' || c > '~' }) || !h.Until.After(now) || h.Until.After(now.Add(provision.MaxHold)) {
		return r, fmt.Errorf("%w: a hold has an owner, and ends within %v", provision.ErrInvalid, provision.MaxHold)
	}
	h.Until = h.Until.UTC()
	if n.Holds = ownership.WithHold(n.Holds, h, n.Copy(false).Points); len(n.Holds) > provision.MaxHolds {
		return r, fmt.Errorf("%w: there are %d holds already", provision.ErrNoSpace, len(r.Holds))
	}
	return n, roomy(n)
}

// Release returns the record without a hold and, if snapshot is set, without the CSI snapshot of
// that id.
func (r Record) Release(owner string, p lineage.Point, now time.Time, snapshot bool) Record {
	n := r.fresh(now)
	n.Holds = slices.DeleteFunc(n.Holds, func(h ownership.Hold) bool { return h.For == owner && h.Point == p })
	if snapshot && n.Snapshots[owner] == p {
		delete(n.Snapshots, owner)
		release(&n)
	}
	return n
}

// Head returns the record of a copy whose head follows its newest point. made says whether the head
// must be made of that point first.
func (r Record) Head(now time.Time) (n Record, made bool, err error) {
	if !r.Exists {
		return r, false, fmt.Errorf("%w: the volume is no copy", provision.ErrConflict)
	}
	if err := r.mayWrite(); err != nil {
		return r, false, err
	}
	if r.Receiving != nil {
		return r, false, fmt.Errorf("%w: a stream is received, or was received half: abort it first", provision.ErrConflict)
	}
	if _, ok := r.Tip(); !ok && !r.Live {
		return r, false, fmt.Errorf("%w: the copy has no point", provision.ErrConflict)
	}
	n = r.fresh(now)
	n.Live = true
	return n, !r.Live, nil
}
