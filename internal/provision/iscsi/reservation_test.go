package iscsi_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/iscsitest"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
)

const (
	keyA, keyB ownership.RawKey = 0x8000000100000a0a, 0x8000000200000b0b

	codeIn, codeOut = 0x5e, 0x5f
)

// pair are two nodes that have the disk attached. The first one holds the reservation.
type pair struct {
	t      *testing.T
	target *iscsitest.Target
	nodes  map[string]*iscsitest.Node
	disks  map[string]*iscsi.Disks
}

func newPair(t *testing.T, o iscsitest.Options, promises shared.Capabilities) *pair {
	t.Helper()
	o.Name = unitName
	p := &pair{t: t, target: iscsitest.New(o), nodes: map[string]*iscsitest.Node{}, disks: map[string]*iscsi.Disks{}}
	for _, n := range []string{"a", "b"} {
		p.nodes[n] = p.target.Node(n)
		p.disks[n] = iscsi.New(config(p.nodes[n], promises))
		p.ok(p.disks[n].Attach(t.Context(), disk))
		p.disks[n].Wait()
	}
	p.ok(p.disks["a"].Register(t.Context(), disk, keyA, shared.Idle))
	p.ok(p.disks["a"].Reserve(t.Context(), disk, 0, keyA))
	p.ok(p.disks["b"].Register(t.Context(), disk, keyB, shared.Idle))
	return p
}

func (p *pair) ok(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// takeover is made again until it has an answer, as its caller does.
func (p *pair) takeover() (err error) {
	for range 4 {
		if err = p.disks["b"].Reserve(p.t.Context(), disk, keyA, keyB); err == nil || !errors.Is(err, provision.ErrUnavailable) {
			return err
		}
	}
	return err
}

var errLost = unix.ETIMEDOUT

// Each command of a takeover is lost once on its way, and its answer once on its way back.
func TestATakeoverThatIsRepeatedAfterALostAnswerTakesOnce(t *testing.T) {
	for _, o := range []iscsitest.Options{{}, {NoAbort: true}} {
		for _, executed := range []bool{false, true} {
			for at := 0; ; at++ {
				p := newPair(t, o, shared.Capabilities{})
				count := 0
				p.nodes["b"].Around = func(_ []byte, execute func() scsi.Result) (r scsi.Result, err error) {
					count++
					if count-1 != at {
						return execute(), nil
					}
					if executed {
						execute()
					}
					return r, errLost
				}
				if err := p.takeover(); err != nil {
					t.Fatalf("%+v, command %d, executed %v: %v", o, at, executed, err)
				}
				keys, holder := p.target.Registrations()
				if holder != uint64(keyB) || !slices.Equal(keys, []uint64{uint64(keyB)}) {
					t.Fatalf("%+v, command %d, executed %v: the registrations are %#x, and the holder's is %#x", o, at, executed, keys, holder)
				}
				if count <= at {
					if at < 5 {
						t.Fatalf("a takeover has %d commands", at)
					}
					break
				}
			}
		}
	}
}

func TestWithoutThePromiseToAbortTheReservationIsTakenWithoutIt(t *testing.T) {
	p := newPair(t, iscsitest.Options{NoAbort: true}, shared.Capabilities{})
	p.ok(p.takeover())
	p = newPair(t, iscsitest.Options{NoAbort: true}, shared.Capabilities{Abort: true})
	if err := p.takeover(); !errors.Is(err, provision.ErrUnsupported) || !strings.Contains(err.Error(), "PREEMPT AND ABORT") {
		t.Errorf("a target that promised to abort: %v", err)
	}
	if _, holder := p.target.Registrations(); holder != uint64(keyA) {
		t.Errorf("the reservation has the key %#x", holder)
	}
}

func TestATakeoverThatComesTooLateTakesNothing(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	const other ownership.RawKey = 0x8000000300000a0a
	p.nodes["b"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if cdb[0] == codeOut && cdb[1] == 5 { // the holder has another key by the time at which it is pre-empted
			p.ok(p.disks["a"].Register(t.Context(), disk, other, shared.Idle))
		}
		return execute(), nil
	}
	if err := p.takeover(); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("%v", err)
	}
	if keys, holder := p.target.Registrations(); holder != uint64(other) || len(keys) != 2 {
		t.Errorf("the registrations are %#x, and the holder's is %#x", keys, holder)
	}
}

func TestAKeyOfTwoSessionsIsNoProofOfHolding(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	p.target.Register(uint64(keyA))
	v, err := p.disks["a"].Look(t.Context(), disk)
	p.ok(err)
	if v.Registered != keyA || v.Holder != keyA || v.Holding {
		t.Errorf("%+v", v.Disk)
	}
	p.ok(p.disks["a"].Reserve(t.Context(), disk, keyA, keyA))
	if v, err = p.disks["a"].Look(t.Context(), disk); err != nil || !v.Holding {
		t.Errorf("%+v, %v", v.Disk, err)
	}
}

func TestALookChangesNoRegistration(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	p.target.Register(uint64(keyA) + 1)
	keys, holder := p.target.Registrations()
	for _, n := range []string{"a", "b"} {
		_, err := p.disks[n].Look(t.Context(), disk)
		p.ok(err)
	}
	if after, holds := p.target.Registrations(); !slices.Equal(keys, after) || holds != holder {
		t.Errorf("the registrations are %#x and were %#x", after, keys)
	}
}

func TestConditionsAreReadOverWithinBounds(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	p.target.Tell("a", 3)
	_, err := p.disks["a"].Look(t.Context(), disk)
	p.ok(err)
	p.target.Tell("a", 1000)
	if _, err = p.disks["a"].Look(t.Context(), disk); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("a target that only reports conditions: %v", err)
	}
}

func TestAReservationOfAnotherTypeIsNotHeld(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	p.target.Retype(3)
	if v, err := p.disks["a"].Look(t.Context(), disk); err != nil || v.Holder != keyA || v.Holding {
		t.Errorf("%+v, %v", v.Disk, err)
	}
}

// PREEMPT of a key that has no reservation would remove its registration.
func TestAKeyThatHoldsNothingLosesNothing(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	const other = keyA + 1
	p.target.Register(uint64(other))
	if err := p.disks["b"].Reserve(t.Context(), disk, other, keyB); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("%v", err)
	}
	if keys, _ := p.target.Registrations(); len(keys) != 3 {
		t.Errorf("the registrations are %#x", keys)
	}
}

func TestATakeoverThatTheTargetOnlyClaimsIsNoTakeover(t *testing.T) {
	p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
	p.nodes["b"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
		if cdb[0] == codeOut && cdb[1] == 5 {
			return scsi.Result{}, nil
		}
		return execute(), nil
	}
	if err := p.takeover(); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("%v", err)
	}
}

// Registrations that change without end are not a view.
func TestRegistrationsThatChangeMeanwhileAreReadAnew(t *testing.T) {
	for changes, want := range map[int]error{1: nil, 1000: provision.ErrUnavailable} {
		p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
		p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
			if cdb[0] == codeIn && cdb[1] == 1 && changes > 0 {
				changes--
				p.ok(p.disks["b"].Register(t.Context(), disk, keyB, shared.OwnMount))
			}
			return execute(), nil
		}
		if _, err := p.disks["a"].Look(t.Context(), disk); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestAnswersThatCannotBeTrustedAreErrors(t *testing.T) {
	all := make([]byte, 16)
	for name, c := range map[string]struct {
		action byte
		data   []byte
		want   error
	}{
		"keys that end too early":     {0, []byte{0, 0, 0, 1, 0, 0, 0, 8}, provision.ErrUnavailable},
		"a holder that all are":       {1, append([]byte{0, 0, 0, 3, 0, 0, 0, 16}, append(all[:13:13], 7, 0, 0)...), provision.ErrConflict},
		"a reservation of a part":     {1, append([]byte{0, 0, 0, 3, 0, 0, 0, 16}, append(all[:13:13], 0x11, 0, 0)...), provision.ErrUnavailable},
		"capabilities of three bytes": {2, []byte{0, 8, 1}, provision.ErrUnavailable},
		"too many registrations":      {0, append([]byte{0, 0, 0, 3, 0, 0, 2, 8}, manyKeys(65)...), provision.ErrConflict},
	} {
		p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
		p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
			if cdb[0] == codeIn && cdb[1] == c.action {
				return scsi.Result{Data: c.data}, nil
			}
			return execute(), nil
		}
		if v, err := p.disks["a"].Look(t.Context(), disk); !errors.Is(err, c.want) || !same(v, shared.View{}) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

func manyKeys(n int) (b []byte) {
	for i := range n {
		b = append(b, 0x80, 0, 0, 0, 0, 0, 0, byte(i))
	}
	return b
}

func TestAStatusBecomesAClassOfErrors(t *testing.T) {
	for name, c := range map[string]struct {
		r    scsi.Result
		want error
	}{
		"not ready":       {scsi.Result{Status: 2, Sense: []byte{0x72, 0x02, 0x04, 0x01, 0, 0, 0, 0}}, provision.ErrUnavailable},
		"hardware error":  {scsi.Result{Status: 2, Sense: []byte{0x72, 0x04, 0x44, 0x00, 0, 0, 0, 0}}, provision.ErrUnavailable},
		"busy":            {scsi.Result{Status: 8}, provision.ErrUnavailable},
		"no connection":   {scsi.Result{Host: 1}, provision.ErrUnavailable},
		"illegal request": {scsi.Result{Status: 2, Sense: []byte{0x72, 0x05, 0x20, 0x00, 0, 0, 0, 0}}, provision.ErrUnsupported},
	} {
		p := newPair(t, iscsitest.Options{}, shared.Capabilities{})
		p.nodes["a"].Around = func(cdb []byte, execute func() scsi.Result) (scsi.Result, error) {
			if cdb[0] == codeIn && cdb[1] == 0 {
				return c.r, nil
			}
			return execute(), nil
		}
		if _, err := p.disks["a"].Look(t.Context(), disk); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ExampleParseHandle() {
	h, err := iscsi.ParseHandle("iscsi://10.0.0.5:3260,[2001:db8::5]:860/iqn.2026-01.com.example:array/1")
	fmt.Println(h.Portals, h.Target, h.LUN, err)
	// Output: [10.0.0.5:3260 [2001:db8::5]:860] iqn.2026-01.com.example:array 1 <nil>
}
