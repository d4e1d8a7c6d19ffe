package replica

import (
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// May returns why a stream must not be applied to the copy of a volume. dirty says that its head
// differs from its newest point.
func (r Record) May(h provision.StreamHeader, v provision.Volume, dirty bool) error {
	if err := h.Check(); err != nil {
		return err
	}
	if err := fits(h, v); err != nil {
		return err
	}
	switch {
	case !r.Exists && v.Filesystem != "":
		return fmt.Errorf("%w: volume %s holds data and is no copy", provision.ErrConflict, v.ID)
	case r.Live && r.mayWrite() == nil:
		return fmt.Errorf("%w: volume %s is open for writing in epoch %v", provision.ErrConflict, v.ID, r.Opened)
	case !h.Base.IsZero() && len(r.Points) >= provision.MaxPoints:
		return fmt.Errorf("%w: volume %s has %d points already", provision.ErrNoSpace, v.ID, len(r.Points))
	}
	if err := takes(r, h); err != nil {
		return err
	}
	c := r.Copy(dirty || r.Unpointed(v))
	c.Size = v.Size
	if ok, why := ownership.Receive(&c, false, &h.Stream); !ok {
		return fmt.Errorf("%w: the stream of volume %s is refused: %s", provision.ErrConflict, v.ID, why.Message())
	}
	return nil
}

// takes returns why the record cannot take the target of a stream.
func takes(r Record, h provision.StreamHeader) error {
	for id, p := range r.Snapshots {
		if slices.Contains(h.Snapshots, id) && p != h.Target {
			return fmt.Errorf("%w: snapshot %s of volume %s is point %v", provision.ErrConflict, id, h.Volume, p)
		}
	}
	if h.Base.IsZero() {
		return nil
	}
	return roomy(r)
}

// fits returns why a stream cannot be of a volume.
func fits(h provision.StreamHeader, v provision.Volume) error {
	switch {
	case v.ID != h.Volume:
		return fmt.Errorf("%w: the stream is of volume %s, not %s", provision.ErrConflict, h.Volume, v.ID)
	case h.Filesystem != v.Filesystem && v.Filesystem != "", provision.ByItself(h.Filesystem) != v.Content.Tree && h.Filesystem != "":
		return fmt.Errorf("%w: the stream is of a volume with filesystem %q, and volume %s has %q", provision.ErrConflict, h.Filesystem, v.ID, v.Filesystem)
	}
	return nil
}

// Begin returns the record with a stream under way that is received into a place. A head without a point is blank, as May
// said, and counts no more: the filesystem of the volume is noted before the record of its first point, and a head that
// counts would pass for data then.
func (r Record) Begin(h provision.StreamHeader, place uint64, now time.Time) Record {
	n := r.fresh(now)
	n.Live, n.Exists = r.Live && len(r.Points) > 0, true
	n.Receiving = &Receiving{Base: h.Base, Target: h.Target, Epoch: h.Promise.Epoch, From: h.From, Size: h.Size, Place: place}
	n.Last = max(n.Last, place)
	return n
}

// Resumes says whether a stream goes on where the one that was received half ended. The epoch may be another one: the
// points are the same, and May says whether they still are of the copy's history.
func (r Record) Resumes(h provision.StreamHeader) bool {
	have := r.Receiving
	return have != nil && have.Base == h.Base && have.Target == h.Target && have.From == h.From && have.Size == h.Size
}

// Received returns the record after a stream was applied into a place: the point and the promise come
// together, and a stream in full takes the place of all points. May said so just now. The error says
// that the stream is not the one under way any more.
func (r Record) Received(h provision.StreamHeader, place uint64, now time.Time) (Record, error) {
	if !r.Resumes(h) {
		return r, fmt.Errorf("%w: the stream of volume %s was aborted", provision.ErrConflict, h.Volume)
	}
	n := r.fresh(now)
	c := n.Copy(false)
	c = ownership.Received(&c, &h.Stream)
	n.Points = nil
	for _, p := range c.Points[:len(c.Points)-1] {
		place, _ := r.Place(p)
		n.Points = append(n.Points, Point{p, place})
	}
	n.Points, n.Last = append(n.Points, Point{h.Target, place}), max(n.Last, place)
	n.Promise, n.Receiving, n.Live = c.Promise, nil, false
	strip(&n, r)
	keep(&n, h.Target, h.Snapshots...)
	return n, nil
}

// Abort returns the record without a stream under way.
func (r Record) Abort(now time.Time) Record {
	n := r.fresh(now)
	n.Receiving = nil
	return n
}
