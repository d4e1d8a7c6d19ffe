package iscsi

import (
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// state is what the target knows of a unit's reservations.
type state struct {
	// own is the key of this session's registration, zero if there is none.
	own uint64
	// holder is the key of the session that has the reservation.
	holder uint64
	// reserved: there is a reservation. holding: it is this session's, and of the type that the disk is to have.
	reserved, holding bool
	// registrants: the reservation lets all sessions write that are registered.
	registrants bool
	// refused: it does not let this one, although it is registered.
	refused bool
	// keys of the registrations of all sessions.
	keys []uint64
}

// writes says whether the target takes the session's writes, as far as that is known.
func (s *state) writes() bool {
	return !s.reserved || s.holding || s.registrants && s.own != 0 && !s.refused
}

// judge joins three answers to one state. kind is the type of the reservation that the disk is to have.
func judge(kind scsi.Type, own uint64, keys scsi.Registrations, r scsi.Reservation) (state, error) {
	under := 0
	for _, k := range keys.Keys {
		if k == own {
			under++
		}
	}
	switch {
	case r.Held && r.Key == 0:
		return state{}, fmt.Errorf("%w: the disk has a reservation of type %d, which all registered sessions hold: remove it", provision.ErrConflict, r.Type)
	case r.Generation != keys.Generation, own != 0 && under == 0, r.Held && !slices.Contains(keys.Keys, r.Key):
		return state{}, errChanging
	}
	// An earlier session of the node may be registered under the same key, and it may be the one
	// that holds the reservation. The target does not say, so only a key of one session counts. A
	// reservation that is taken from the key itself ends the doubt.
	holding := r.Held && r.Key == own && under == 1 && r.Type == kind
	return state{own: own, holder: r.Key, reserved: r.Held, holding: holding, registrants: r.Held && r.Type == registrantsOnly, keys: keys.Keys}, nil
}
