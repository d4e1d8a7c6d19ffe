package ledger

// Obstacle says why a volume cannot grow. The zero Obstacle means that it can.
type Obstacle struct {
	Node, Pool string
	Reason     Reason
	// Need is how much more the replica would take, Free the room that the pool has
	// left.
	Need, Free int64
}

// Grant sets room aside for a Volume to grow to the size on every node that has a
// replica, or says which one it does not fit on. It makes the check at once that a
// claim's wish gets when it is observed. A grant without a wish stands until the
// Volume is observed the next time. A Volume that is not known has NotReported.
func (l *Ledger) Grant(name string, bytes int64) Obstacle {
	v := l.volumes[name]
	switch {
	case !l.synced:
		return Obstacle{Reason: NotSynced}
	case v == nil || !v.present:
		return Obstacle{Reason: NotReported}
	case bytes <= max(v.capacity, v.growth):
		return Obstacle{}
	}
	if o := l.obstacle(v, bytes); o.Reason != Fits {
		return o
	}
	v.growth = bytes
	v.posted = l.post(v.posted, v.owner, l.wanted(v))
	return Obstacle{}
}

// obstacle is the first replica that cannot grow to the size, of a volume whose charges are posted.
func (l *Ledger) obstacle(v *volume, size int64) Obstacle {
	for _, at := range live(v.replicas) {
		o := Obstacle{Node: at.node, Pool: at.pool}
		node := l.nodes[at.node] // the volume is posted there, so there is a book
		switch {
		case !node.reported:
			o.Reason = NotReported
			return o
		case !node.ready:
			o.Reason = NodeNotReady
			return o
		}
		b := node.book(at.pool)
		if o.Reason = b.closed(v.class); o.Reason != Fits {
			return o
		}
		o.Need, o.Free = b.Kind.Charge(&b.Pool, l.class(v.class), size)-b.fact(v.owner).charge, b.room(v.class)
		if o.Need > 0 && o.Need > o.Free {
			o.Reason = NoRoom
			return o
		}
	}
	return Obstacle{}
}
