package iscsitest

import (
	"encoding/binary"
	"encoding/hex"
	"sync"

	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// Options of a target.
type Options struct {
	// Forgets: the target keeps no registration through its loss of power, and refuses those that ask for that.
	Forgets bool
	// NoAbort: the target does not know PREEMPT AND ABORT.
	NoAbort bool
	// ByInitiator: the target compares initiators, and not their sessions, when it judges a write, as LIO does. See counts.
	ByInitiator bool
	// Shares is how many initiators may be logged in at once; 0 means any number.
	Shares int
	// Serial number and name (16 hexadecimal digits after "naa.") of the unit.
	Serial, Name string
}

// Target has one logical unit.
type Target struct {
	Options
	// Name and LUN by which nodes find the unit.
	TargetName string
	LUN        int

	mu sync.Mutex
	// sessions by node. A new login has a new nexus, and nothing of the old one's.
	sessions map[string]*session
	last     int
	// The registrations in the order in which they came. A nexus that ended keeps its own.
	registrations []registration
	holder        int // nexus
	kind          byte
	// marked are the initiators that count as registered, if the target compares them.
	marked     map[string]bool
	generation uint32
	// keeps is what the last registration asked for: to keep all of this through a loss of power.
	keeps bool
	log   []string
}

type session struct {
	node  string
	nexus int
	// attentions are how many conditions are to be reported.
	attentions int
	units      bool
	away       bool
	// refused: the kernel has seen the error of a write.
	refused  bool
	buffered []string
	openers  int
}

type registration struct {
	nexus int
	node  string
	key   uint64
}

// New makes a target with one unit.
func New(o Options) *Target {
	return &Target{Options: o, TargetName: "iqn.2026-01.com.example:array", LUN: 1, sessions: map[string]*session{}, marked: map[string]bool{}}
}

// Log returns the blocks that the unit executed, in order.
func (t *Target) Log() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.log...)
}

// Relogin ends a node's session, which begins anew at once: the device stays.
func (t *Target) Relogin(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[node]; s != nil {
		t.relogin(s)
	}
}

func (t *Target) relogin(s *session) {
	t.last++
	s.nexus, s.attentions = t.last, 1
}

// Restart is a loss of power of the target.
func (t *Target) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Forgets || !t.keeps {
		t.registrations, t.holder, t.kind, t.generation = nil, 0, 0, 0
		clear(t.marked)
	}
	for _, s := range t.sessions {
		t.relogin(s)
	}
}

// Cut takes the path of a node away, or gives it back.
func (t *Target) Cut(node string, away bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[node].away = away
}

// Misplace puts another unit in the unit's place.
func (t *Target) Misplace() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Name, t.Serial = "60000000000000ff", "other"
}

func (t *Target) write(s *session, block string) error {
	if !t.holds(s) && !(t.kind == registrantsOnly && t.counts(s)) {
		s.refused = true
		return scsi.ErrReservationConflict
	}
	t.log = append(t.log, block)
	return nil
}

func (t *Target) key(nexus int) (uint64, bool) {
	for _, r := range t.registrations {
		if r.nexus == nexus {
			return r.key, true
		}
	}
	return 0, false
}

// remove ends the registrations for which f holds, and the reservation of one of them.
func (t *Target) remove(f func(registration) bool) {
	var left []registration
	for _, r := range t.registrations {
		if !f(r) {
			left = append(left, r)
			continue
		}
		t.marked[r.node] = false
		if t.holder == r.nexus {
			t.holder, t.kind = 0, 0
		}
	}
	t.registrations = left
}

var (
	attention = scsi.Result{Status: 0x02, Sense: []byte{0x70, 0, 0x06, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0x00, 0, 0, 0, 0}}
	conflict  = scsi.Result{Status: 0x18}
	done      = scsi.Result{}
)

func illegal(code byte) scsi.Result {
	return scsi.Result{Status: 0x02, Sense: []byte{0x72, 0x05, code, 0, 0, 0, 0, 0}}
}

// execute executes a command of a session.
func (t *Target) execute(s *session, cdb, out []byte) scsi.Result {
	switch {
	case cdb[0] == 0x12:
		return t.inquiry(cdb)
	case s.attentions > 0:
		s.attentions--
		return attention
	case cdb[0] == 0x5e:
		return t.reserveIn(cdb[1])
	case cdb[0] == 0x5f && len(out) == 24 && binary.BigEndian.Uint32(cdb[5:]) == 24:
		return t.reserveOut(s, cdb[1], cdb[2], out)
	}
	return illegal(0x20)
}

// inquiry answers with the names of the unit.
func (o *Options) inquiry(cdb []byte) scsi.Result {
	switch {
	case cdb[1] != 1:
		return illegal(0x24)
	case cdb[2] == 0x80:
		return scsi.Result{Data: append([]byte{0, 0x80, 0, byte(len(o.Serial))}, o.Serial...)}
	case cdb[2] == 0x83:
		name, err := hex.DecodeString(o.Name)
		if err != nil {
			panic(err)
		}
		vendor := []byte("EXAMPLE array")
		d := append([]byte{0x02, 0x01, 0, byte(len(vendor))}, vendor...)
		d = append(append(d, 0x01, 0x03, 0, byte(len(name))), name...)
		d = append(d, 0x51, 0x94, 0, 4, 0, 0, 0, 1) // the port
		return scsi.Result{Data: append([]byte{0, 0x83, 0, byte(len(d))}, d...)}
	}
	return illegal(0x24)
}

func (t *Target) reserveIn(action byte) scsi.Result {
	head := binary.BigEndian.AppendUint32(nil, t.generation)
	switch action {
	case 0:
		b := binary.BigEndian.AppendUint32(head, uint32(8*len(t.registrations)))
		for _, r := range t.registrations {
			b = binary.BigEndian.AppendUint64(b, r.key)
		}
		return scsi.Result{Data: b}
	case 1:
		key, held := t.key(t.holder)
		if !held {
			return scsi.Result{Data: append(head, 0, 0, 0, 0)}
		}
		b := binary.BigEndian.AppendUint64(append(head, 0, 0, 0, 16), key)
		return scsi.Result{Data: append(b, 0, 0, 0, 0, 0, t.kind, 0, 0)}
	case 2:
		if t.Forgets {
			return scsi.Result{Data: []byte{0, 8, 0, 0x80, 0xea, 0x01, 0, 0}}
		}
		return scsi.Result{Data: []byte{0, 8, 0x01, 0x81, 0xea, 0x01, 0, 0}}
	}
	return illegal(0x24)
}

func (t *Target) reserveOut(s *session, action, kind byte, out []byte) scsi.Result {
	own, second := binary.BigEndian.Uint64(out), binary.BigEndian.Uint64(out[8:])
	key, registered := t.key(s.nexus)
	switch {
	case t.Forgets && out[20]&1 != 0:
		return illegal(0x26)
	case action == 0x06:
		t.keeps = out[20]&1 != 0
		return t.asked(s, second)
	case own != key || action != 0x00 && !registered: // the key of a session that is not registered is zero
		return conflict
	case action == 0x00:
		t.keeps = out[20]&1 != 0
		return t.asked(s, second)
	case t.holder != 0 && !t.holds(s) && !t.counts(s):
		return conflict
	}
	return t.change(s, action, kind, second)
}

// change executes what only a session may do that is registered.
func (t *Target) change(s *session, action, kind byte, victim uint64) scsi.Result {
	switch action {
	case 0x01:
		if t.holder != 0 && (t.holder != s.nexus || t.kind != kind) {
			return conflict
		}
		t.holder, t.kind = s.nexus, kind
	case 0x02:
		return t.release(s, kind)
	case 0x05, 0x04:
		if action == 0x05 && t.NoAbort {
			return illegal(0x24)
		}
		return t.preempt(s.nexus, victim, kind)
	default:
		return illegal(0x24)
	}
	return done
}

// asked registers a session that asks for it. A key of zero ends its registration.
func (t *Target) asked(s *session, key uint64) scsi.Result {
	if key != 0 {
		return t.register(registration{s.nexus, s.node, key})
	}
	t.generation++
	t.remove(func(r registration) bool { return r.nexus == s.nexus })
	return done
}

func (t *Target) register(r registration) scsi.Result {
	t.generation++
	for i := range t.registrations {
		if t.registrations[i].nexus == r.nexus {
			t.registrations[i].key = r.key
			return done
		}
	}
	t.registrations = append(t.registrations, r)
	t.marked[r.node] = true
	return done
}

func (t *Target) preempt(nexus int, victim uint64, kind byte) scsi.Result {
	known := false
	for _, r := range t.registrations {
		known = known || r.key == victim
	}
	if !known {
		return conflict
	}
	held, holds := t.key(t.holder)
	takes := holds && held == victim
	t.generation++
	t.remove(func(r registration) bool {
		gone := r.key == victim && (r.nexus != nexus || !takes)
		for _, s := range t.sessions {
			if gone && s.nexus == r.nexus && r.nexus != nexus {
				s.attentions++
			}
		}
		return gone
	})
	if takes {
		t.holder, t.kind = nexus, kind
	}
	return done
}

// Registrations returns the keys of all registrations, and the key of the one that has the
// reservation, zero if none has.
func (t *Target) Registrations() (keys []uint64, holder uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.registrations {
		keys = append(keys, r.key)
	}
	holder, _ = t.key(t.holder)
	return keys, holder
}

// Register registers a session of an initiator that the test does not play.
func (t *Target) Register(key uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.register(registration{nexus: t.last, key: key})
}

// Clear is an administrator's: it removes the reservation and all registrations.
func (t *Target) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.generation++
	t.remove(func(registration) bool { return true })
}

// Tell has the target report so many conditions to a node in place of its next commands.
func (t *Target) Tell(node string, conditions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[node].attentions += conditions
}

// Retype gives the reservation another type.
func (t *Target) Retype(kind byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kind = kind
}
