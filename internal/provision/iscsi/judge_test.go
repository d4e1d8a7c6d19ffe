package iscsi

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// The target answers three questions, one after the other.
func TestThreeAnswersAreOneStateOnlyIfTheyAgree(t *testing.T) {
	const own, other = 7, 9
	held := func(key uint64) scsi.Reservation {
		return scsi.Reservation{Generation: 1, Held: true, Key: key, Type: writeExclusive}
	}
	keys := func(keys ...uint64) scsi.Registrations { return scsi.Registrations{Generation: 1, Keys: keys} }
	for name, c := range map[string]struct {
		own  uint64
		keys scsi.Registrations
		r    scsi.Reservation
		want state
		err  error
	}{
		"a disk that nothing was done to":     {0, keys(), scsi.Reservation{Generation: 1}, state{}, nil},
		"a session that is registered":        {own, keys(own, other), scsi.Reservation{Generation: 1}, state{own: own, registrations: 2}, nil},
		"a holder":                            {own, keys(own, other), held(own), state{own: own, holder: own, reserved: true, holding: true, registrations: 2}, nil},
		"another holder":                      {own, keys(own, other), held(other), state{own: own, holder: other, reserved: true, registrations: 2}, nil},
		"a holder, seen by a stranger":        {0, keys(other), held(other), state{holder: other, reserved: true, registrations: 1}, nil},
		"a registration under a key of zero":  {0, keys(0, other), held(other), state{holder: other, reserved: true, registrations: 2}, nil},
		"two sessions under the holder's key": {own, keys(own, own), held(own), state{own: own, holder: own, reserved: true, registrations: 2}, nil},
		"a reservation that is not held":      {own, keys(own), scsi.Reservation{Generation: 1, Key: own, Type: writeExclusive}, state{own: own, holder: own, registrations: 1}, nil},
		"answers of two generations":          {own, keys(own), scsi.Reservation{Generation: 2}, state{}, errChanging},
		"a holder that is not registered":     {own, keys(own), held(other), state{}, errChanging},
		"an own key that is gone":             {own, keys(other), held(other), state{}, errChanging},
		"a reservation of all":                {own, keys(own), held(0), state{}, provision.ErrConflict},
	} {
		if got, err := judge(c.own, c.keys, c.r); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
}
