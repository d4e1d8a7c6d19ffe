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
	// reserved: there is a reservation. holding: it is this session's, and lets no other one write.
	reserved, holding bool
	// registrations of all sessions.
	registrations int
}

// judge joins three answers to one state.
func judge(own uint64, keys scsi.Registrations, r scsi.Reservation) (state, error) {
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
	holding := r.Held && r.Key == own && under == 1 && r.Type == writeExclusive
	return state{own: own, holder: r.Key, reserved: r.Held, holding: holding, registrations: len(keys.Keys)}, nil
}
