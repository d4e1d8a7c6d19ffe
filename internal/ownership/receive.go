package ownership

import "berth.dev/berth/internal/lineage"

// Stream is the header of a snapshot stream. Promise is the sender's, and Size that of its copy.
type Stream struct {
	Promise      Promise
	Base, Target lineage.Point
	Size         int64
}

// Receive decides whether a stream may be applied to the copy, before its first
// byte is, and once more when all of them are there. The stream may be old, late, repeated or from a node that does not
// know that it has been replaced. A sender of an older epoch is believed about a point of the receiver's own history: all
// nodes have the same data there. So an epoch that begins while a copy is made does not undo the work of hours.
func Receive(c *Copy, mounted bool, s *Stream) (accept bool, why Why) {
	p, tip, history := &s.Promise, c.Tip(), s.history(c)
	switch {
	case mounted || c.Dirty:
		return false, Why{Reason: CopyInUse}
	case c.Condemned:
		return false, Why{Reason: CopyCondemned}
	case s.stale(c) && !history.Contains(s.Target):
		return false, Why{Reason: StaleEpoch, Epoch: p.Epoch}
	case rivals(p.Epoch, c.Promise.Epoch):
		return false, Why{Reason: RivalEpoch, Epoch: p.Epoch}
	case s.Size > c.Size: // the filesystem would end beyond the device
		return false, Why{Reason: TooSmall}
	case !history.Contains(s.Target):
		return false, Why{Reason: NotInLineage, Point: s.Target}
	case s.Base.IsZero() && tip != c.Preserved && !(history.Contains(tip) && s.Target.Seq > tip.Seq):
		return false, Why{Reason: WouldDestroyBranch, Point: tip}
	case !s.Base.IsZero() && s.Base != tip:
		return false, Why{Reason: WrongBase, Point: s.Base}
	case s.Target.Seq <= s.Base.Seq:
		return false, Why{Reason: NothingNew, Point: s.Target}
	}
	return true, Why{Reason: Accepted, Point: s.Target}
}

// stale tells whether the sender's epoch is older than the receiver's promise.
func (s *Stream) stale(c *Copy) bool { return s.Promise.Epoch.Number < c.Promise.Epoch.Number }

// history is that of the receiver or of the sender, whichever is in the later epoch.
func (s *Stream) history(c *Copy) lineage.Lineage {
	if s.stale(c) {
		return c.Promise.Lineage
	}
	return s.Promise.Lineage
}

// rivals tells whether two epochs have one number: one of them comes from a restored backup.
func rivals(a, b lineage.Epoch) bool { return a.Number == b.Number && a.ID != b.ID }

// Received is the copy after the stream has been applied and made durable. The
// sender's epoch becomes the receiver's promise in the same step, unless that is newer: a promise never falls.
func Received(c *Copy, s *Stream) Copy {
	n := *c
	n.Exists = true
	if !s.stale(c) {
		n.Promise = s.Promise
	}
	n.Points = nil
	if !s.Base.IsZero() {
		n.Points = append(make([]lineage.Point, 0, len(c.Points)+1), c.Points...)
	}
	n.Points = append(n.Points, s.Target)
	return n
}
