package conformance

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/provision"
)

// RunForgets runs the suite which checks that no volume shows the data of a deleted one. It
// varies how volumes are wiped, unless the harness asks for WipeNone. Start is called for each
// test.
func RunForgets(t *testing.T, start func(*testing.T) Harness) { runForgets(t, start, machineClock) }

// RunForgetsPlayed is RunForgets with a clock as RunPlayed has it.
func RunForgetsPlayed(t *testing.T, start func(*testing.T) Harness) {
	runForgets(t, start, synctest.Test)
}

func runForgets(t *testing.T, start func(*testing.T) Harness, by clock) {
	for name, test := range map[string]func(*testing.T, fixture){
		"a later volume does not show the data of a deleted volume": neverShows,
		"a later volume does not show the data of a grown volume":   neverShowsGrowth,
		"a restart does not keep deleted data":                      neverShowsAfterRestart,
		"a refused delete does not touch an open device":            keepsWhatIsOpen,
	} {
		t.Run(name, func(t *testing.T) {
			by(t, func(t *testing.T) {
				f := newFixture(t, start(t))
				// Volume 0 takes the rest, so that each volume has the space of the one before.
				f.create(t, 0, f.pool(t).Free/f.unit-roundUnits)
				test(t, f)
			})
		})
	}
}

const (
	secret = "what nobody else may read"
	// roundUnits is the space, in units, that the volumes of a test have one after the other.
	roundUnits = 4
)

// places returns offsets in a volume, one of which differs in each round.
func places(v provision.Volume, unit int64, round, rounds int) (at []int64) {
	for offset := int64(0); offset < v.Size; offset += unit {
		at = append(at, offset, offset+unit-int64(len(secret)))
	}
	return append(at, v.Size/2, (v.Size-4096)*int64(round)/int64(rounds)/4096*4096+512)
}

// blank fails if a volume shows data at one of the places, before or after a write near them.
// The write matters since a thin pool gives a block to a volume at the first write to it: the
// rest of the block could then show its old data.
func (f fixture) blank(t *testing.T, v provision.Volume, at []int64) {
	t.Helper()
	f.showsNothing(t, v, at)
	for _, offset := range at {
		const page = 4096
		f.WriteAt(v, "own", (offset/page^1)*page+page/2) // in the neighbouring page, which has no place
	}
	f.showsNothing(t, v, at)
}

func (f fixture) showsNothing(t *testing.T, v provision.Volume, at []int64) {
	t.Helper()
	for _, offset := range at {
		if got := f.ReadAt(v, len(secret), offset); strings.Trim(got, "\x00") != "" {
			t.Fatalf("volume %s begins with %q at %d", v.ID, got, offset)
		}
	}
}

func (f fixture) fill(t *testing.T, v provision.Volume, at []int64) {
	t.Helper()
	for _, offset := range at {
		f.WriteAt(v, secret, offset)
		if got := f.ReadAt(v, len(secret), offset); got != secret {
			t.Fatalf("wrote %q at %d and read %q", secret, offset, got)
		}
	}
}

func neverShows(t *testing.T, f fixture) {
	rounds := Rounds(t)
	for round := range rounds {
		if f.Wipe != provision.WipeNone {
			f.Wipe = []provision.Wipe{"", provision.WipeZero}[round%2]
		}
		v := f.create(t, 1+round%2, roundUnits)
		f.blank(t, v, places(v, f.unit, max(round-1, 0), rounds)) // the places of the volume before
		f.fill(t, v, places(v, f.unit, round, rounds))
		f.delete(t, 1+round%2)
	}
}

func neverShowsGrowth(t *testing.T, f fixture) {
	v := f.create(t, 1, 1)
	v, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: roundUnits * f.unit})
	if err != nil {
		t.Fatal(err)
	}
	f.fill(t, v, places(v, f.unit, 0, 1))
	f.delete(t, 1)
	v = f.create(t, 2, roundUnits)
	f.blank(t, v, places(v, f.unit, 0, 1))
}

func neverShowsAfterRestart(t *testing.T, f fixture) {
	v := f.create(t, 1, roundUnits)
	at := places(v, f.unit, 0, 1)
	f.fill(t, v, at)
	if err := f.Provisioner.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	f.Provisioner = f.Restart()
	_, err := f.Provisioner.Get(t.Context(), v.ID)
	wantError(t, err, provision.ErrNotFound)
	f.settle(t)
	v = f.create(t, 1, roundUnits)
	f.blank(t, v, at)
	if left := fmt.Sprint(f.pool(t).Wiping); left != "[]" {
		t.Errorf("still being wiped: %s", left)
	}
}

func keepsWhatIsOpen(t *testing.T, f fixture) {
	v := f.create(t, 1, roundUnits)
	at := places(v, f.unit, 0, 1)
	f.fill(t, v, at)
	closeDevice := f.Open(v)
	wantError(t, f.Provisioner.Delete(t.Context(), v.ID), provision.ErrInUse)
	for _, offset := range at {
		if got := f.ReadAt(v, len(secret), offset); got != secret {
			t.Errorf("it holds %q at %d", got, offset)
		}
	}
	closeDevice()
	f.delete(t, 1)
	f.blank(t, f.create(t, 2, roundUnits), at)
}
