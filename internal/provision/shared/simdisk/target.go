package simdisk

import (
	"fmt"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// state is everything that the target knows. It changes only as a whole: see store.
type state struct {
	// Identity that the device shows.
	Identity provision.Identity
	// Shares is to how many nodes the disk can be attached at once.
	Shares     int
	Persistent bool
	// Late: what was known before a loss of power is in Saved until its node logs in.
	Late  bool
	Saved map[string]saved
	// Slow: an attach stays under way until Target.Finish ends it, as if a controller did.
	Slow bool
	// Sessions by node. A node has one at a time; a node that is not in the map is detached.
	Sessions map[string]session
	// Last is the number of the newest session of all nodes.
	Last uint64
	// Holder has the reservation: a key, and the number of the session that took it.
	Holder holder
}

type session struct {
	Number uint64
	Link   ownership.Link
	Key    ownership.RawKey
	// Failed: a write of this session was refused since it was last flushed.
	Failed bool
}

// saved is a node's registration from before a loss of power. Holds: it had the reservation.
type saved struct {
	Key   ownership.RawKey
	Holds bool
}

type holder struct {
	Key     ownership.RawKey
	Session uint64
}

// Write is a write as it is sent to the target.
type Write struct {
	Node string
	// Session that sends it, and the epoch in which the writer believes to be.
	Session uint64
	Epoch   lineage.Epoch
	Data    string
}

// errRefused is the reservation conflict of a write.
var errRefused = fmt.Errorf("%w: the disk is reserved for another node", provision.ErrConflict)

// judge says whether the target executes a write now.
func (s *state) judge(w Write) error {
	at, ok := s.Sessions[w.Node]
	switch {
	case !ok || at.Link != ownership.Attached || at.Number != w.Session:
		return fmt.Errorf("%w: session %d of node %s has ended", provision.ErrUnavailable, w.Session, w.Node)
	case s.Holder != holder{} && s.Holder.Session != w.Session:
		return errRefused
	}
	return nil
}

func (s *state) view(node string) ownership.Disk {
	at := s.Sessions[node]
	d := ownership.Disk{Link: at.Link}
	if d.Link == ownership.Attached {
		d.Registered, d.Holder = at.Key, s.Holder.Key
		d.Holding = s.Holder.Key != 0 && s.Holder.Session == at.Number
	}
	return d
}

// attached returns the session of a node whose device is there.
func (s *state) attached(node string) (session, error) {
	at, ok := s.Sessions[node]
	if !ok || at.Link != ownership.Attached {
		return at, fmt.Errorf("%w: the disk is not attached to node %s", provision.ErrUnavailable, node)
	}
	return at, nil
}

func (s *state) attach(node string) {
	if s.begin(node); !s.Slow {
		s.finish(node, true)
	}
}

// begin lets a node log in, unless it is on its way or there.
func (s *state) begin(node string) {
	at := s.Sessions[node]
	if at.Link == ownership.Attached || at.Link == ownership.Attaching {
		return
	}
	s.Last++
	s.Sessions[node] = session{Number: s.Last, Link: ownership.Attaching}
}

// finish ends an attach. One beyond the shares fails.
func (s *state) finish(node string, well bool) {
	at, ok := s.Sessions[node]
	if !ok || at.Link != ownership.Attaching {
		return
	}
	at.Link = ownership.AttachFailed
	if well && len(s.Sessions) <= s.Shares {
		at.Link = ownership.Attached
	}
	s.Sessions[node] = at
	s.remembers(node)
}

// remembers brings back what was saved of a node that has logged in.
func (s *state) remembers(node string) {
	at, r := s.Sessions[node], s.Saved[node]
	if at.Link != ownership.Attached || r.Key == 0 {
		return
	}
	at.Key = r.Key
	s.Sessions[node] = at
	if r.Holds {
		s.Holder = holder{r.Key, at.Number}
	}
	delete(s.Saved, node)
}

func (s *state) register(node string, key ownership.RawKey) error {
	at, err := s.attached(node)
	if err != nil {
		return err
	}
	switch holds := s.Holder.Key != 0 && s.Holder.Session == at.Number; {
	case holds && key == 0:
		s.Holder = holder{}
	case holds:
		s.Holder.Key = key
	}
	at.Key = key
	s.Sessions[node] = at
	return nil
}

// reserve takes the reservation from exactly the expected key. The one that held it is not
// registered any more.
func (s *state) reserve(node string, expect, key ownership.RawKey) error {
	at, err := s.attached(node)
	switch {
	case err != nil:
		return err
	case key == 0 || at.Key != key:
		return fmt.Errorf("%w: the session of node %s is not registered under key %#x", provision.ErrConflict, node, uint64(key))
	case s.Holder.Key != expect && s.Holder != holder{key, at.Number}:
		return fmt.Errorf("%w: the reservation has the key %#x, not %#x", provision.ErrConflict, uint64(s.Holder.Key), uint64(expect))
	}
	for other, o := range s.Sessions {
		if other != node && o.Key == s.Holder.Key {
			o.Key = 0
			s.Sessions[other] = o
		}
	}
	s.Holder = holder{key, at.Number}
	return nil
}

// relogin ends a node's session. The node logs in again at once and is a stranger to the target, unless that kept
// what it knew before it lost its power.
func (s *state) relogin(node string) {
	s.forgets(node)
	s.remembers(node)
}

func (s *state) forgets(node string) {
	if at, ok := s.Sessions[node]; ok && at.Link == ownership.Attached {
		s.Last++
		s.Sessions[node] = session{Number: s.Last, Link: ownership.Attached, Failed: at.Failed}
	}
}

// restart is the target's loss of power. No session outlives it.
func (s *state) restart() {
	for node, at := range s.Sessions {
		if s.Late && at.Key != 0 {
			s.Saved[node] = saved{at.Key, s.Holder.Key != 0 && s.Holder.Session == at.Number}
		}
		s.forgets(node)
	}
	if !s.Persistent || s.Late {
		s.Holder = holder{}
	}
}

func (s *state) clear(node string) error {
	if _, err := s.attached(node); err != nil {
		return err
	}
	for other, o := range s.Sessions {
		o.Key = 0
		s.Sessions[other] = o
	}
	s.Holder = holder{}
	return nil
}
