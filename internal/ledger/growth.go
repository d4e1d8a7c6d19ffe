package ledger

import (
	"cmp"
	"slices"
)

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
func (vs *volumes) Grant(name string, bytes int64) Obstacle {
	v := vs.byName[name]
	switch {
	case !vs.shelf.synced:
		return Obstacle{Reason: NotSynced}
	case v == nil || !v.present:
		return Obstacle{Reason: NotReported}
	case bytes <= max(v.capacity, v.growth):
		return Obstacle{}
	}
	if o := v.obstacle(vs.shelf, bytes); o.Reason != Fits {
		return o
	}
	v.growth = bytes
	v.post(vs.shelf)
	return Obstacle{}
}

// settle posts the volume's charges, and notes the node whose next report may let it grow to the size that
// its claims wish for.
func (v *volume) settle(s *shelf, wish int64) {
	s.waiting.await(*v.owner, &v.waits, v.grow(s, wish))
}

// grow posts the volume's charges. They include the growth that its claim asks for,
// if that fits on every node that has a replica. A wish that does not fit is not
// charged: no claim can close a node by asking for the impossible. It is checked
// again with the next report. A growth is granted for these replicas only, and is
// checked anew for others.
func (v *volume) grow(s *shelf, wish int64) (waitFor string) {
	if !v.present || wish <= v.capacity {
		wish = 0
	}
	v.growth = min(v.growth, wish)
	v.post(s)
	if wish <= v.growth || len(live(v.replicas)) == 0 {
		return ""
	}
	if !s.synced {
		return live(v.replicas)[0].node
	}
	if node := v.obstacle(s, wish).Node; node != "" {
		return node
	}
	v.growth = wish
	v.post(s)
	return ""
}

// live are the places of the replicas that a growth would concern.
func live(replicas []Replica) []place {
	var live []place
	for i := range replicas {
		if r := &replicas[i]; r.State != Gone && r.State != Refused {
			live = append(live, place{r.Node, r.Pool})
		}
	}
	slices.SortFunc(live, func(a, b place) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.pool, b.pool)) })
	return live
}

// obstacle is the first replica that cannot grow to the size, of a volume whose charges are posted.
func (v *volume) obstacle(s *shelf, size int64) Obstacle {
	for _, at := range live(v.replicas) {
		o := Obstacle{Node: at.node, Pool: at.pool}
		node := s.nodes[at.node] // the volume is posted there, so there is a book
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
		o.Need, o.Free = b.Kind.Charge(&b.Pool, s.classes.class(v.class), size)-b.fact(v.owner).charge, b.room(v.class)
		if o.Need > 0 && o.Need > o.Free {
			o.Reason = NoRoom
			return o
		}
	}
	return Obstacle{}
}
