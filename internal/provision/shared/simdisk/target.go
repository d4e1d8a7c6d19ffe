package simdisk

import (
	"fmt"
	"slices"

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
	// Known: a node's next session has the registration of its last one.
	Known bool
	// Old are the registrations of sessions that ended.
	Old []registration
}

type registration struct {
	Node    string
	Session uint64
	Key     ownership.RawKey
}

type session struct {
	Number uint64
	Link   ownership.Link
	Key    ownership.RawKey
	// Failed: a write of this session was refused since it was last flushed.
	Failed bool
}

// saved is a node's registration from before a loss of power. Holds: it had the reservation, and Registrants says of
// which kind that was.
type saved struct {
	Key                ownership.RawKey
	Holds, Registrants bool
}

type holder struct {
	Key     ownership.RawKey
	Session uint64
	// Registrants: all sessions that are registered may write, and not the holder's alone.
	Registrants bool
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
	case s.Holder.Registrants && at.Key != 0:
	case s.Holder != holder{} && s.Holder.Session != w.Session:
		return errRefused
	}
	return nil
}

// view is what a node sees. A session holds the reservation if that is of the kind that the disk is to have.
func (s *state) view(node string, many bool) ownership.Disk {
	at := s.Sessions[node]
	d := ownership.Disk{Link: at.Link}
	if d.Link == ownership.Attached {
		d.Registered, d.Holder, d.Registrants, d.Keys = at.Key, s.Holder.Key, s.Holder.Registrants, s.keys()
		d.Holding = s.Holder.Key != 0 && s.Holder.Session == at.Number && s.Holder.Registrants == many
	}
	return d
}

// keys are those of all registrations, each once. A holder is registered.
func (s *state) keys() (keys []ownership.RawKey) {
	keys = append(keys, s.Holder.Key)
	for _, at := range s.Sessions {
		keys = append(keys, at.Key)
	}
	for _, r := range s.Old {
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(k ownership.RawKey) bool { return k == 0 })
	if len(keys) == 0 {
		return nil
	}
	return keys
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
	s.knows(node)
	at, r := s.Sessions[node], s.Saved[node]
	if at.Link != ownership.Attached || r.Key == 0 {
		return
	}
	at.Key = r.Key
	s.Sessions[node] = at
	if r.Holds {
		s.Holder = holder{r.Key, at.Number, r.Registrants}
	}
	delete(s.Saved, node)
}

// knows gives a node's session the registration of its last one, if the target knows it again.
func (s *state) knows(node string) {
	at := s.Sessions[node]
	i := slices.IndexFunc(s.Old, func(r registration) bool { return r.Node == node })
	if !s.Known || i < 0 || at.Link != ownership.Attached {
		return
	}
	at.Key = s.Old[i].Key
	if s.Holder.Session == s.Old[i].Session {
		s.Holder.Session = at.Number
	}
	s.Sessions[node], s.Old = at, slices.Delete(s.Old, i, i+1)
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

// registered returns the session of a node that is registered under a key.
func (s *state) registered(node string, key ownership.RawKey) (session, error) {
	at, err := s.attached(node)
	if err == nil && (key == 0 || at.Key != key) {
		err = fmt.Errorf("%w: the session of node %s is not registered under key %#x", provision.ErrConflict, node, uint64(key))
	}
	return at, err
}

// reserve takes the reservation from exactly the expected key. The one that held it is not
// registered any more.
func (s *state) reserve(node string, expect, key ownership.RawKey) error {
	at, err := s.registered(node, key)
	mine := holder{Key: key, Session: at.Number}
	switch {
	case err != nil:
		return err
	case s.Holder.Key != expect && s.Holder != mine:
		return fmt.Errorf("%w: the reservation has the key %#x, not %#x", provision.ErrConflict, uint64(s.Holder.Key), uint64(expect))
	}
	s.remove(node, s.Holder.Key)
	s.Holder = mine
	return nil
}

// remove ends all registrations under a key but that of a node's session.
func (s *state) remove(but string, key ownership.RawKey) {
	for node, at := range s.Sessions {
		if node != but && at.Key == key {
			at.Key = 0
			s.Sessions[node] = at
		}
	}
	s.Old = slices.DeleteFunc(s.Old, func(r registration) bool { return r.Key == key })
}

// preempt ends the registrations under a key, and has the disk reserved for all that are registered. A reservation of
// another kind stays if its holder has another key: whole says that there is none.
func (s *state) preempt(node string, expect, key ownership.RawKey) (whole bool, err error) {
	at, err := s.registered(node, key)
	mine := holder{Key: key, Session: at.Number, Registrants: true}
	switch {
	case err != nil:
		return false, err
	case expect == 0 && s.Holder != holder{} && s.Holder != mine:
		return false, fmt.Errorf("%w: the disk is reserved under key %#x", provision.ErrConflict, uint64(s.Holder.Key))
	case expect != 0 && !slices.Contains(s.keys(), expect):
		return false, fmt.Errorf("%w: no session is registered under key %#x", provision.ErrConflict, uint64(expect))
	case expect == key && s.Holder.Key != key:
		return false, fmt.Errorf("%w: the session of node %s would end its own registration", provision.ErrConflict, node)
	}
	if expect != 0 {
		s.remove(node, expect)
	}
	if s.Holder.Key == expect || s.Holder.Key == 0 {
		s.Holder = mine
	}
	return s.Holder.Registrants, nil
}

// relogin ends a node's session. The node logs in again at once and is a stranger to the target, unless that kept
// what it knew before it lost its power.
func (s *state) relogin(node string) {
	s.forgets(node)
	s.remembers(node)
}

func (s *state) forgets(node string) {
	if at, ok := s.Sessions[node]; ok && at.Link == ownership.Attached {
		s.age(node)
		s.Last++
		s.Sessions[node] = session{Number: s.Last, Link: ownership.Attached, Failed: at.Failed}
	}
}

// leaves ends a node's session for good.
func (s *state) leaves(node string) {
	s.age(node)
	delete(s.Sessions, node)
}

// age keeps the registration of a session that ends.
func (s *state) age(node string) {
	if at := s.Sessions[node]; at.Key != 0 {
		s.Old = append(s.Old, registration{node, at.Number, at.Key})
	}
}

// restart is the target's loss of power. No session outlives it.
func (s *state) restart() {
	for node, at := range s.Sessions {
		if s.Late && at.Key != 0 {
			s.Saved[node] = saved{at.Key, s.Holder.Key != 0 && s.Holder.Session == at.Number, s.Holder.Registrants}
		}
		s.forgets(node)
	}
	if !s.Persistent || s.Late {
		s.Holder, s.Old = holder{}, nil
	}
	for node := range s.Sessions {
		s.knows(node)
	}
}
