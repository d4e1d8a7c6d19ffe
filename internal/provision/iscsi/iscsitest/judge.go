package iscsitest

import "berth.dev/berth/internal/provision/iscsi/scsi"

// registrantsOnly is the type of a reservation that lets all write that are registered.
const registrantsOnly = 5

// holds says whether the reservation lets a session write because it holds it, or because there is none.
func (t *Target) holds(s *session) bool {
	if t.holder == 0 || t.holder == s.nexus {
		return true
	}
	for _, r := range t.registrations {
		if t.ByInitiator && r.nexus == t.holder {
			return r.node == s.node
		}
	}
	return false
}

// counts says whether a session counts as registered. LIO keeps a mark for each initiator: a registration of any of its
// sessions sets it, and the end of any clears it, also while others of them are registered.
func (t *Target) counts(s *session) bool {
	if t.ByInitiator {
		return t.marked[s.node]
	}
	_, registered := t.key(s.nexus)
	return registered
}

// release ends the reservation of a session that holds it. To others that changes nothing.
func (t *Target) release(s *session, kind byte) scsi.Result {
	switch {
	case t.holder != s.nexus:
	case t.kind != kind && t.ByInitiator: // LIO says so, and not what the standard says
		return conflict
	case t.kind != kind:
		return illegal(0x26)
	default:
		t.holder, t.kind = 0, 0
	}
	return done
}
