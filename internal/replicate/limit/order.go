package limit

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Class is how much a stream matters.
type Class int

// The classes, in the order in which they begin.
const (
	// Rescue: the volume has fewer copies than it should, or a pod waits for it.
	Rescue Class = iota
	// overdue: it has waited for long.
	overdue
	// Build: a new copy is made.
	Build
	// Follow: a copy follows its primary.
	Follow
)

func (c Class) String() string { return [...]string{"Rescue", "overdue", "Build", "Follow"}[c] }

// Direction is which end of a stream this node is.
type Direction int

// The directions. They have places of their own: sending and receiving burden a node differently.
const (
	Send Direction = iota
	Receive
)

func (d Direction) String() string { return [...]string{"send", "receive"}[d] }

// Request asks for a place.
type Request struct {
	// Number is that of its arrival. It grows, and tells requests apart.
	Number uint64
	// Volume and Peer are whose stream it is and the node at its other end.
	Volume, Peer string
	Direction    Direction
	Class        Class
	// Since is when it arrived.
	Since time.Time
}

// Places are how many streams run at a time.
type Places struct {
	// Send and Receive are for the node.
	Send, Receive int
	// Peer is for the streams with one other node, in each direction. A stream has its place to receive while it
	// waits for the other node's place to send. If the directions shared places, two nodes that follow each other
	// would wait for each other.
	Peer int
}

// The reasons of answers.
const (
	ReasonPlaceFree  = "PlaceFree"
	ReasonVolumeBusy = "VolumeBusy"
	ReasonPeerBusy   = "PeerBusy"
	ReasonNodeBusy   = "NodeBusy"
)

// Answer says whether a request may begin now.
type Answer struct {
	Number          uint64
	Begin           bool
	Reason, Message string
}

// patience is after how long a request is overdue, and comes before all that are not rescued: streams that follow
// must not wait for ever behind copies that are built. It is much shorter than a peer waits (package stream), because
// a peer that asks anew is a new request.
const patience = 2 * time.Minute

// Order answers each waiting request, the next one first. It gives places by class; in a class, to
// the peer with the fewest streams; then to the one that has waited longest. So a node that asks for a
// hundred volumes keeps no other node waiting, and no class waits for ever.
func Order(waiting, running []Request, places Places, now time.Time) []Answer {
	use := newUse(running)
	rest := slices.Clone(waiting)
	answers := make([]Answer, 0, len(waiting))
	for len(rest) > 0 {
		next := slices.MinFunc(rest, func(a, b Request) int {
			return cmp.Or(
				cmp.Compare(a.class(now), b.class(now)),
				cmp.Compare(use.peers[a.way()], use.peers[b.way()]),
				cmp.Compare(a.Number, b.Number))
		})
		rest = slices.DeleteFunc(rest, func(r Request) bool { return r.Number == next.Number })
		answer := use.answer(next, places)
		if answer.Begin {
			use.add(next)
		}
		answers = append(answers, answer)
	}
	return answers
}

func (r Request) class(now time.Time) Class {
	if now.Sub(r.Since) >= patience {
		return min(r.Class, overdue)
	}
	return r.Class
}

// use is what runs.
type use struct {
	directions map[Direction]int
	peers      map[way]int
	volumes    map[string]bool
}

func newUse(running []Request) use {
	u := use{directions: map[Direction]int{}, peers: map[way]int{}, volumes: map[string]bool{}}
	for _, r := range running {
		u.add(r)
	}
	return u
}

func (u use) add(r Request) {
	u.directions[r.Direction]++
	u.peers[r.way()]++
	u.volumes[r.stream()] = true
}

// way is a direction between this node and another.
type way struct {
	direction Direction
	peer      string
}

func (r Request) way() way { return way{r.Direction, r.Peer} }

// stream is what runs once at a time: a volume to or from one node.
func (r Request) stream() string { return fmt.Sprint(r.Direction, " ", r.Volume, " ", r.Peer) }

func (u use) answer(r Request, p Places) Answer {
	limit := p.Send
	if r.Direction == Receive {
		limit = p.Receive
	}
	a := Answer{Number: r.Number}
	switch {
	case u.volumes[r.stream()]:
		a.Reason, a.Message = ReasonVolumeBusy, fmt.Sprintf("volume %s already has a stream with node %s", r.Volume, r.Peer)
	case u.peers[r.way()] >= p.Peer:
		a.Reason, a.Message = ReasonPeerBusy, fmt.Sprintf("%d streams %s with node %s, and %d may", u.peers[r.way()], r.Direction, r.Peer, p.Peer)
	case u.directions[r.Direction] >= limit:
		a.Reason, a.Message = ReasonNodeBusy, fmt.Sprintf("%d streams %s on this node, and %d may", u.directions[r.Direction], r.Direction, limit)
	default:
		a.Begin, a.Reason, a.Message = true, ReasonPlaceFree, fmt.Sprintf("a place to %s is free", r.Direction)
	}
	return a
}
