package iscsi

import (
	"errors"
	"reflect"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// The target answers three questions, one after the other.
func TestThreeAnswersAreOneStateOnlyIfTheyAgree(t *testing.T) {
	const own, other = 7, 9
	held := func(key uint64, kind scsi.Type) scsi.Reservation {
		return scsi.Reservation{Generation: 1, Held: true, Key: key, Type: kind}
	}
	none := scsi.Reservation{Generation: 1}
	keys := func(keys ...uint64) scsi.Registrations { return scsi.Registrations{Generation: 1, Keys: keys} }
	for name, c := range map[string]struct {
		kind scsi.Type
		own  uint64
		keys scsi.Registrations
		r    scsi.Reservation
		want state
		err  error
	}{
		"a disk that nothing was done to":     {writeExclusive, 0, keys(), none, state{}, nil},
		"a session that is registered":        {writeExclusive, own, keys(own, other), none, state{own: own}, nil},
		"a holder":                            {writeExclusive, own, keys(own, other), held(own, writeExclusive), state{own: own, holder: own, reserved: true, holding: true}, nil},
		"another holder":                      {writeExclusive, own, keys(own, other), held(other, writeExclusive), state{own: own, holder: other, reserved: true}, nil},
		"a holder, seen by a stranger":        {writeExclusive, 0, keys(other), held(other, writeExclusive), state{holder: other, reserved: true}, nil},
		"a registration under a key of zero":  {writeExclusive, 0, keys(0, other), held(other, writeExclusive), state{holder: other, reserved: true}, nil},
		"two sessions under the holder's key": {writeExclusive, own, keys(own, own), held(own, writeExclusive), state{own: own, holder: own, reserved: true}, nil},
		"a reservation that is not held": {
			writeExclusive, own, keys(own), scsi.Reservation{Generation: 1, Key: own, Type: writeExclusive}, state{own: own, holder: own}, nil,
		},
		"a holder for several": {
			registrantsOnly, own, keys(own, other), held(own, registrantsOnly), state{own: own, holder: own, reserved: true, holding: true, registrants: true}, nil,
		},
		"a holder for several of a disk for one": {
			writeExclusive, own, keys(own), held(own, registrantsOnly), state{own: own, holder: own, reserved: true, registrants: true}, nil,
		},
		"a holder for one of a disk for several": {registrantsOnly, own, keys(own), held(own, writeExclusive), state{own: own, holder: own, reserved: true}, nil},
		"answers of two generations":             {writeExclusive, own, keys(own), scsi.Reservation{Generation: 2}, state{}, errChanging},
		"a holder that is not registered":        {writeExclusive, own, keys(own), held(other, writeExclusive), state{}, errChanging},
		"an own key that is gone":                {writeExclusive, own, keys(other), held(other, writeExclusive), state{}, errChanging},
		"a reservation of all":                   {writeExclusive, own, keys(own), held(0, writeExclusive), state{}, provision.ErrConflict},
	} {
		if c.err == nil {
			c.want.keys = c.keys.Keys
		}
		if got, err := judge(c.kind, c.own, c.keys, c.r); !reflect.DeepEqual(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
}
