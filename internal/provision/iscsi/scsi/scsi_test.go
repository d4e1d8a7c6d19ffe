package scsi

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unhex reads bytes as the standard's tables show them.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	keyA uint64 = 0x8000000100112233
	keyB uint64 = 0xc0000002aabbccdd
)

func TestEachCommandHasTheBytesOfTheStandard(t *testing.T) {
	for name, c := range map[string]struct {
		got      Command
		cdb, out string
		in       int
	}{
		"names":        {Inquiry(DeviceIdentification), "12 01 83 00fc 00", "", 252},
		"serial":       {Inquiry(UnitSerialNumber), "12 01 80 00fc 00", "", 252},
		"keys":         {ReadKeys(), "5e 00 00000000 00 1f48 00", "", 8008},
		"reservation":  {ReadReservation(), "5e 01 00000000 00 0018 00", "", 24},
		"capabilities": {ReportCapabilities(), "5e 02 00000000 00 0008 00", "", 8},
		"register": {
			Register(keyA, keyB, false).Command(), "5f 00 00 0000 00000018 00",
			"8000000100112233 c0000002aabbccdd 00000000 00 00 0000", 0,
		},
		"register, and persist": {
			RegisterAnyway(keyB, true).Command(), "5f 06 00 0000 00000018 00",
			"0000000000000000 c0000002aabbccdd 00000000 01 00 0000", 0,
		},
		"reserve": {
			Reserve(keyA, WriteExclusive).Command(), "5f 01 01 0000 00000018 00",
			"8000000100112233 0000000000000000 00000000 00 00 0000", 0,
		},
		"release": {
			Release(keyA, WriteExclusive).Command(), "5f 02 01 0000 00000018 00",
			"8000000100112233 0000000000000000 00000000 00 00 0000", 0,
		},
		"preempt": {
			Preempt(keyA, keyB, WriteExclusiveRegistrantsOnly).Command(), "5f 04 05 0000 00000018 00",
			"8000000100112233 c0000002aabbccdd 00000000 00 00 0000", 0,
		},
		"preempt and abort": {
			PreemptAndAbort(keyA, keyB, WriteExclusive).Command(), "5f 05 01 0000 00000018 00",
			"8000000100112233 c0000002aabbccdd 00000000 00 00 0000", 0,
		},
	} {
		want := Command{Name: c.got.Name, CDB: unhex(t, c.cdb), In: c.in}
		if c.out != "" {
			want.Out = unhex(t, c.out)
		}
		if diff := cmp.Diff(want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestKeysAreRead(t *testing.T) {
	for text, want := range map[string][]uint64{
		"00000007 00000000":                  nil,
		"00000007 00000008 8000000100112233": {keyA},
		"00000007 00000018 8000000100112233 c0000002aabbccdd 8000000100112233": {keyA, keyB, keyA},
		"00000007 00000008 8000000100112233 0000000000000000":                  {keyA}, // what follows is not of the list
	} {
		got, err := ParseKeys(unhex(t, text))
		if err != nil || got.Generation != 7 || !slices.Equal(got.Keys, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "00000007", "00000007 00000008", "00000007 00000010 8000000100112233", "00000007 00000004 80000001", "00000007 ffffffff"} {
		if got, err := ParseKeys(unhex(t, text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestTheReservationIsRead(t *testing.T) {
	for text, want := range map[string]Reservation{
		"00000007 00000000": {Generation: 7},
		"00000007 00000010 8000000100112233 00000000 00 01 0000": {Generation: 7, Held: true, Key: keyA, Type: WriteExclusive},
		"00000007 00000010 0000000000000000 00000000 00 07 0000": {Generation: 7, Held: true, Type: WriteExclusiveAllRegistrants},
	} {
		if got, err := ParseReservation(unhex(t, text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for name, text := range map[string]string{
		"nothing":               "",
		"half":                  "00000007 00000010 8000000100112233",
		"too short":             "00000007 00000008 8000000100112233",
		"a part of the unit":    "00000007 00000010 8000000100112233 00000000 00 11 0000",
		"two of them":           "00000007 00000020 8000000100112233 00000000 00 01 0000 8000000100112233 00000000 00 01 0000",
		"more than was brought": "00000007 00000010",
	} {
		if got, err := ParseReservation(unhex(t, text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestCapabilitiesAreRead(t *testing.T) {
	all := []Type{WriteExclusive, ExclusiveAccess, WriteExclusiveRegistrantsOnly, ExclusiveAccessRegistrantsOnly, WriteExclusiveAllRegistrants, ExclusiveAccessAllRegistrants}
	for text, want := range map[string]Capabilities{
		"0008 1d 91 ea 01 0000": {CanPersist: true, Persists: true, Types: all}, // LIO, with a registration that persists
		"0008 00 80 ea 01 0000": {Types: all},                                   // tgt
		"0008 01 80 02 00 0000": {CanPersist: true, Types: all[:1]},
		"0008 01 80 08 00 0000": {CanPersist: true, Types: all[1:2]},
		"0008 01 00 ea 01 0000": {CanPersist: true}, // the mask is not valid
	} {
		got, err := ParseCapabilities(unhex(t, text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
		if offers := len(want.Types) == 0 || want.Types[0] == WriteExclusive; got.Offers(WriteExclusive) != offers {
			t.Errorf("%s: offers Write Exclusive: %v", text, !offers)
		}
	}
	for _, text := range []string{"", "0008 01", "0004 01 80 02 00 0000"} {
		if _, err := ParseCapabilities(unhex(t, text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSenseDataOfBothFormatsIsRead(t *testing.T) {
	for text, want := range map[string]SenseError{
		"70 00 06 00000000 0a 00000000 29 00 00 00 0000": {UnitAttention, 0x29, 0},
		"f0 00 05 00000000 0a 00000000 24 00 00 00 0000": {IllegalRequest, 0x24, 0},
		"72 02 04 01 000000 00":                          {NotReady, 0x04, 0x01},
		"70 00 24 00":                                    {HardwareError, 0, 0}, // a flag beside the key, and no more bytes
	} {
		if got, err := ParseSense(unhex(t, text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "70", "7f 00 06 00 00", "00 00 00 00"} {
		if _, err := ParseSense(unhex(t, text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAResultMeansOneThing(t *testing.T) {
	for name, c := range map[string]struct {
		r    Result
		want error
	}{
		"good":                 {Result{}, nil},
		"conflict":             {Result{Status: 0x18}, ErrReservationConflict},
		"conflict by the host": {Result{Status: 0x18, Host: 5}, ErrReservationConflict},
		"no connection":        {Result{Host: 1}, ErrNoAnswer},
		"busy":                 {Result{Status: 0x08}, ErrBusy},
		"queue full":           {Result{Status: 0x28}, ErrBusy},
		"aborted":              {Result{Status: 0x40}, ErrNoAnswer},
		"unknown":              {Result{Status: 0x77}, ErrMalformed},
		"check without sense":  {Result{Status: 0x02}, ErrMalformed},
	} {
		if got := c.r.Err(); !errors.Is(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	err := Result{Status: 0x02, Sense: unhex(t, "72 05 24 00 00000000")}.Err()
	if sense, ok := errors.AsType[*SenseError](err); !ok || sense.Key != IllegalRequest || err.Error() != "ILLEGAL REQUEST (additional sense code 24h/00h)" {
		t.Errorf("a refused command: %v", err)
	}
}

func TestAUnitNamesItself(t *testing.T) {
	vendor := "02 01 00 04 41424344"
	naa := "01 03 00 10 6001405a1b2c3d4e5f60718293a4b5c6"
	port := "51 93 00 08 5001405000000001"
	eui := "01 02 00 08 0025385b71b00001"
	for text, want := range map[string][]string{
		"00 83 0000":                              nil,
		"00 83 0014" + naa:                        {"naa.6001405a1b2c3d4e5f60718293a4b5c6"},
		"00 83 0034" + vendor + port + naa + eui:  {"naa.6001405a1b2c3d4e5f60718293a4b5c6", "eui.0025385b71b00001"},
		"00 83 000c 01 03 00 08 3000000100000001": nil, // a name of one place
		"00 83 0034" + vendor:                     nil, // more was announced
		"00 83 0008 01 03 00 20 6001405a":         nil, // a name that ends beyond the page
		"00 83 0008 02 03 00 04 41424344":         nil, // a name of letters
		"00 83 0008 01 03 00 04 41424344":         nil, // a name of another length
	} {
		if got, err := Names(unhex(t, text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for name, text := range map[string]string{"no unit": "7f 83 0014" + naa, "a tape": "01 83 0014" + naa, "another page": "00 80 0014" + naa, "nothing": ""} {
		if got, err := Names(unhex(t, text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for text, want := range map[string]string{
		"00 80 0004 61623132":            "ab12",
		"00 80 0008 20206162 31320000":   "ab12",
		"00 80 0000":                     "",
		"00 80 0004 61620a32":            "",
		"00 80 00ff 61623132":            "ab12",
		"00 80 0004 61623132 deadbeef00": "ab12",
	} {
		if got, err := Serial(unhex(t, text)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

// A target can answer anything.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{"", "00000007 00000008 8000000100112233", "00830014 01030010 6001405a1b2c3d4e5f60718293a4b5c6", "0008 1d 91 ea 01 0000", "70 00 06 00000000 0a 00000000 29 00 00 00 0000"} {
		f.Add(unhex(f, text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if keys, err := ParseKeys(b); err == nil && len(keys.Keys) > len(b)/8 {
			t.Errorf("%d keys of %d bytes", len(keys.Keys), len(b))
		}
		if r, err := ParseReservation(b); err == nil && !r.Held && r.Key != 0 {
			t.Errorf("a key without a reservation: %+v", r)
		}
		if c, err := ParseCapabilities(b); err == nil && len(c.Types) > 6+2 {
			t.Errorf("%d types", len(c.Types))
		}
		if names, err := Names(b); err == nil && 4*len(names) > len(b) {
			t.Errorf("%d names of %d bytes", len(names), len(b))
		}
		if serial, err := Serial(b); err == nil && strings.ContainsAny(serial, "\x00\n\x7f") {
			t.Errorf("a serial number that is not printable: %q", serial)
		}
		_, _ = ParseSense(b)
	})
}
