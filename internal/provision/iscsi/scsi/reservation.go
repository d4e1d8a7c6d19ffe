package scsi

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Type of a reservation.
type Type byte

// Types of reservations.
const (
	WriteExclusive                 Type = 0x1
	ExclusiveAccess                Type = 0x3
	WriteExclusiveRegistrantsOnly  Type = 0x5
	ExclusiveAccessRegistrantsOnly Type = 0x6
	WriteExclusiveAllRegistrants   Type = 0x7
	ExclusiveAccessAllRegistrants  Type = 0x8
)

// maxKeys is how many registrations of one unit are read.
const maxKeys = 1000

// ReadKeys asks for the keys of all registrations.
func ReadKeys() Command { return reserveIn("PERSISTENT RESERVE IN, READ KEYS", 0x00, 8+8*maxKeys) }

// ReadReservation asks for the reservation.
func ReadReservation() Command {
	return reserveIn("PERSISTENT RESERVE IN, READ RESERVATION", 0x01, 24)
}

// ReportCapabilities asks what the unit can do with reservations.
func ReportCapabilities() Command {
	return reserveIn("PERSISTENT RESERVE IN, REPORT CAPABILITIES", 0x02, 8)
}

func reserveIn(name string, action byte, length uint16) Command {
	cdb := make([]byte, 10)
	cdb[0], cdb[1] = 0x5e, action
	binary.BigEndian.PutUint16(cdb[7:], length)
	return Command{Name: name, CDB: cdb, In: int(length)}
}

// Change of the registrations or the reservation of a unit.
type Change struct {
	name   string
	action byte
	// kind is left out where the standard ignores it.
	kind Type
	// key is the session's own, and second another key, whose meaning is the action's.
	key, second uint64
	// persist asks the target to keep all registrations through its loss of power.
	persist bool
}

// Register gives the session's registration another key, if it is registered under the first one.
// With two equal keys it changes nothing, and tells whether the session is registered under that.
func Register(own, key uint64, persist bool) Change {
	return Change{name: "REGISTER", action: 0x00, key: own, second: key, persist: persist}
}

// RegisterAnyway registers the session under a key, whatever its key was. Zero ends its registration, and the
// reservation that it holds.
func RegisterAnyway(key uint64, persist bool) Change {
	return Change{name: "REGISTER AND IGNORE EXISTING KEY", action: 0x06, second: key, persist: persist}
}

// Reserve takes a reservation that no session holds.
func Reserve(own uint64, kind Type) Change {
	return Change{name: "RESERVE", action: 0x01, kind: kind, key: own}
}

// Release gives a reservation of a type up that the session holds. If another session holds it, this changes nothing,
// and only tells whether the session is registered: to any that is not the target refuses it.
func Release(own uint64, kind Type) Change {
	return Change{name: "RELEASE", action: 0x02, kind: kind, key: own}
}

// Preempt removes all registrations under a key but the session's own. If that key's session held
// the reservation, this session holds it now.
func Preempt(own, victim uint64, kind Type) Change {
	return Change{name: "PREEMPT", action: 0x04, kind: kind, key: own, second: victim}
}

// PreemptAndAbort also aborts the commands of the sessions that it removes.
func PreemptAndAbort(own, victim uint64, kind Type) Change {
	return Change{name: "PREEMPT AND ABORT", action: 0x05, kind: kind, key: own, second: victim}
}

// Command returns the change as a command.
func (c Change) Command() Command {
	cdb := make([]byte, 10)
	cdb[0], cdb[1], cdb[2] = 0x5f, c.action, byte(c.kind) // the scope, in the upper half, is the unit: 0
	out := make([]byte, 24)
	binary.BigEndian.PutUint32(cdb[5:], uint32(len(out))) //nolint:gosec // 24
	binary.BigEndian.PutUint64(out, c.key)
	binary.BigEndian.PutUint64(out[8:], c.second)
	if c.persist {
		out[20] = 0x01
	}
	return Command{Name: "PERSISTENT RESERVE OUT, " + c.name, CDB: cdb, Out: out}
}

// Registrations is the answer to ReadKeys.
type Registrations struct {
	// Generation changes with each registration, pre-emption and clearing, not with a reservation.
	Generation uint32
	// Keys has one for each session that is registered. Sessions may share one.
	Keys []uint64
}

// ParseKeys reads the answer to ReadKeys.
func ParseKeys(b []byte) (Registrations, error) {
	generation, body, err := reservations(b)
	if err != nil {
		return Registrations{}, err
	}
	if len(body)%8 != 0 {
		return Registrations{}, fmt.Errorf("%w: keys of %d bytes", ErrMalformed, len(body))
	}
	r := Registrations{Generation: generation}
	for ; len(body) > 0; body = body[8:] {
		r.Keys = append(r.Keys, binary.BigEndian.Uint64(body))
	}
	return r, nil
}

// Reservation is the answer to ReadReservation.
type Reservation struct {
	Generation uint32
	// Held says that there is a reservation.
	Held bool
	// Key of the session that holds it; zero if all that are registered hold it.
	Key  uint64
	Type Type
}

// ParseReservation reads the answer to ReadReservation.
func ParseReservation(b []byte) (Reservation, error) {
	generation, body, err := reservations(b)
	if err != nil {
		return Reservation{}, err
	}
	r := Reservation{Generation: generation}
	switch {
	case len(body) == 0:
		return r, nil
	case len(body) != 16:
		return r, fmt.Errorf("%w: a reservation of %d bytes", ErrMalformed, len(body))
	}
	if scope := body[13] >> 4; scope != 0 {
		return r, fmt.Errorf("%w: a reservation of the scope %d", ErrMalformed, scope)
	}
	r.Held, r.Key, r.Type = true, binary.BigEndian.Uint64(body), Type(body[13]&0x0f)
	return r, nil
}

// reservations returns the generation and what follows the header. An answer that did not fit is
// an error: part of a list of keys looks like a whole one.
func reservations(b []byte) (generation uint32, body []byte, err error) {
	if len(b) < 8 {
		return 0, nil, fmt.Errorf("%w: %d bytes about reservations", ErrMalformed, len(b))
	}
	length := binary.BigEndian.Uint32(b[4:])
	if uint64(length) > uint64(len(b)-8) {
		return 0, nil, fmt.Errorf("%w: %d bytes about reservations were announced, and %d came", ErrMalformed, length, len(b)-8)
	}
	return binary.BigEndian.Uint32(b), b[8 : 8+length], nil
}

// Capabilities is the answer to ReportCapabilities.
type Capabilities struct {
	// CanPersist: the target can keep registrations and the reservation through its loss of power.
	// Persists: it does so now, because a registration asked for it.
	CanPersist, Persists bool
	// Types of reservations; empty if the target does not say.
	Types []Type
}

// Offers says whether reservations of a type can be had, as far as the target says.
func (c Capabilities) Offers(t Type) bool {
	return len(c.Types) == 0 || slices.Contains(c.Types, t)
}

// ParseCapabilities reads the answer to ReportCapabilities.
func ParseCapabilities(b []byte) (Capabilities, error) {
	if len(b) < 8 || binary.BigEndian.Uint16(b) < 8 {
		return Capabilities{}, fmt.Errorf("%w: %d bytes of capabilities", ErrMalformed, len(b))
	}
	c := Capabilities{CanPersist: b[2]&0x01 != 0, Persists: b[3]&0x01 != 0}
	if b[3]&0x80 == 0 { // the mask of types does not count
		return c, nil
	}
	mask := binary.LittleEndian.Uint16(b[4:]) // bit n is type n
	for t := WriteExclusive; t <= ExclusiveAccessAllRegistrants; t++ {
		if mask>>t&1 != 0 {
			c.Types = append(c.Types, t)
		}
	}
	return c, nil
}
