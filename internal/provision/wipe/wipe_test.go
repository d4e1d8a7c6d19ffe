package wipe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/wipe"
)

var errBroken = errors.New("a broken sector")

// device is a device in memory, full of data that no later volume may read.
type device struct {
	data []byte
	// discard and overwrite fail with these errors; liesDiscarding and lies do nothing
	// and say that they did.
	discard, overwrite, read error
	liesDiscarding, lies     bool
	discards, overwrites     int
	// discardable is how often it supports a discard; 0 is always.
	discardable int
}

// none records nothing.
func none(int64, bool) error { return nil }

func full(size int) *device {
	return &device{data: bytes.Repeat([]byte("secret!?"), (size+7)/8)[:size]}
}

func (d *device) ReadAt(b []byte, offset int64) (int, error) {
	return copy(b, d.data[offset:]), d.read
}

func (d *device) Discard(offset, length int64) error {
	d.discards++
	if d.discardable > 0 && d.discards > d.discardable {
		return errors.ErrUnsupported
	}
	if d.discard == nil && !d.liesDiscarding && !d.lies {
		clear(d.data[offset : offset+length])
	}
	return d.discard
}

func (d *device) Overwrite(offset, length int64) error {
	if d.overwrites++; d.overwrite == nil && !d.lies {
		clear(d.data[offset : offset+length])
	}
	return d.overwrite
}

func TestADeviceIsZerosOrTheWipingFailed(t *testing.T) {
	const size = 1 << 20
	unsupported := fmt.Errorf("no such thing: %w", errors.ErrUnsupported)
	for name, tc := range map[string]struct {
		how    provision.Wipe
		device func(*device)
		// discards and overwrites are the numbers of tries; there are four steps.
		discards, overwrites int
		want                 error
	}{
		"discarded":                                       {provision.WipeDiscard, func(*device) {}, 4, 0, nil},
		"overwritten":                                     {provision.WipeZero, func(*device) {}, 0, 4, nil},
		"an unknown way of wiping discards":               {"Shred", func(*device) {}, 4, 0, nil},
		"the device does not support discards":            {provision.WipeDiscard, func(d *device) { d.discard = unsupported }, 1, 4, nil},
		"the device supports only the first two discards": {provision.WipeDiscard, func(d *device) { d.discardable = 2 }, 3, 4, nil},
		"a discard leaves the data":                       {provision.WipeDiscard, func(d *device) { d.liesDiscarding = true }, 1, 4, nil},
		"a discard leaves data between the samples": {provision.WipeDiscard, func(d *device) {
			d.liesDiscarding = true
			clear(d.data[:size/4])
			d.data[size/8] = 'x' // between the samples
		}, 2, 4, nil},
		"neither a discard nor an overwrite clears the data": {provision.WipeDiscard, func(d *device) { d.lies = true }, 1, 1, wipe.ErrNotZeros},
		"an overwrite leaves the data":                       {provision.WipeZero, func(d *device) { d.lies = true }, 0, 1, wipe.ErrNotZeros},
		"a discard fails":                                    {provision.WipeDiscard, func(d *device) { d.discard = errBroken }, 1, 0, errBroken},
		"an overwrite fails":                                 {provision.WipeZero, func(d *device) { d.overwrite = errBroken }, 0, 1, errBroken},
		"a read fails":                                       {provision.WipeZero, func(d *device) { d.read = errBroken }, 0, 1, errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			d := full(size)
			tc.device(d)
			err := wipe.Do(t.Context(), d, tc.how, wipe.Range{Length: size, Step: size / 4}, none)
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if d.discards != tc.discards || d.overwrites != tc.overwrites {
				t.Errorf("discarded %d times and overwrote %d times, want %d and %d", d.discards, d.overwrites, tc.discards, tc.overwrites)
			}
			if tc.want == nil && strings.Trim(string(d.data), "\x00") != "" {
				t.Error("something is left")
			}
		})
	}
}

func TestExactlyTheRangeIsWiped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 300 << 10
		d := full(size)
		before := slices.Clone(d.data)
		from, to := rapid.IntRange(0, size).Draw(t, "from"), rapid.IntRange(0, size).Draw(t, "to")
		from, to = min(from, to), max(from, to)
		r := wipe.Range{Offset: int64(from), Length: int64(to - from), Step: rapid.Int64Range(1<<10, size).Draw(t, "step")}
		how := rapid.SampledFrom([]provision.Wipe{provision.WipeDiscard, provision.WipeZero}).Draw(t, "how")
		last := int64(0)
		if err := wipe.Do(t.Context(), d, how, r, func(done int64, _ bool) error { last = done; return nil }); err != nil || last != r.Length {
			t.Fatalf("%v, %d bytes done", err, last)
		}
		if !slices.Equal(d.data[:from], before[:from]) || !slices.Equal(d.data[to:], before[to:]) || len(bytes.Trim(d.data[from:to], "\x00")) > 0 {
			t.Fatalf("from %d to %d is not what was wiped", from, to)
		}
	})
}

func TestWipingStopsBetweenTwoStepsWhenItsContextEnds(t *testing.T) {
	d := full(4 << 10)
	ctx, cancel := context.WithCancel(t.Context())
	err := wipe.Do(ctx, d, provision.WipeZero, wipe.Range{Length: 4 << 10, Step: 1 << 10}, func(done int64, _ bool) error {
		if done == 2<<10 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || d.overwrites != 2 {
		t.Errorf("got %v after %d steps", err, d.overwrites)
	}
}

// attempt wipes until steps steps are done, and returns how many bytes last.
func attempt(t *testing.T, d *device, how provision.Wipe, r wipe.Range, steps int) (lasting int64, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lasting = r.Done
	err = wipe.Do(ctx, d, how, r, func(done int64, lasts bool) error {
		if lasts {
			lasting = done
		}
		if steps--; steps == 0 {
			cancel()
		}
		return nil
	})
	return lasting, err
}

func TestALaterAttemptGoesOnBehindTheLastingProgress(t *testing.T) {
	const size, step = 1 << 20, 1 << 18
	unsupported := fmt.Errorf("no such thing: %w", errors.ErrUnsupported)
	for name, tc := range map[string]struct {
		how    provision.Wipe
		device func(*device)
		// lasts is how many bytes last after two of four steps. discards and overwrites are
		// the steps of both attempts together.
		lasts                int64
		discards, overwrites int
	}{
		"overwritten":                            {provision.WipeZero, func(*device) {}, 2 * step, 0, 4},
		"the device does not support discards":   {provision.WipeDiscard, func(d *device) { d.discard = unsupported }, 2 * step, 1, 4},
		"the progress of discards does not last": {provision.WipeDiscard, func(*device) {}, 0, 6, 0},
		"an earlier discard left the data": {provision.WipeDiscard, func(d *device) { d.liesDiscarding = true },
			2 * step, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			d := full(size)
			tc.device(d)
			r := wipe.Range{Length: size, Step: step}
			var err error
			if r.Done, err = attempt(t, d, tc.how, r, 2); !errors.Is(err, context.Canceled) || r.Done != tc.lasts {
				t.Fatalf("%d bytes last, %v", r.Done, err)
			}
			if r.Done, err = attempt(t, d, tc.how, r, 9); err != nil {
				t.Fatal(err)
			}
			if r.Done == size {
				t.Error("a record says that the whole of it is wiped: one that stays behind would spare the next from it")
			}
			if d.discards != tc.discards || d.overwrites != tc.overwrites {
				t.Errorf("discarded %d times and overwrote %d times", d.discards, d.overwrites)
			}
			if strings.Trim(string(d.data), "\x00") != "" {
				t.Error("something is left")
			}
		})
	}
}

func TestNoProgressLastsOnADeviceThatIgnoresWrites(t *testing.T) {
	d := full(1 << 20)
	r := wipe.Range{Length: 1 << 20, Step: 1 << 18}
	lasts, err := attempt(t, d, provision.WipeZero, r, 2)
	if r.Done = lasts; !errors.Is(err, context.Canceled) || lasts != 2<<18 {
		t.Fatalf("%d bytes last, %v", lasts, err)
	}
	d.lies = true
	if lasts, err = attempt(t, d, provision.WipeZero, r, 9); !errors.Is(err, wipe.ErrNotZeros) || lasts != 0 {
		t.Errorf("%d bytes last, %v", lasts, err)
	}
}

func TestARecordThatCannotBeWrittenEndsTheWiping(t *testing.T) {
	err := wipe.Do(t.Context(), full(1<<20), provision.WipeZero, wipe.Range{Length: 1 << 20, Step: 1 << 18}, func(int64, bool) error { return errBroken })
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestARecordThatFitsNoRangeCountsAsNone(t *testing.T) {
	for _, done := range []int64{-1, 1<<20 + 1} {
		d := full(1 << 20)
		if err := wipe.Do(t.Context(), d, provision.WipeZero, wipe.Range{Length: 1 << 20, Step: 1 << 18, Done: done}, none); err != nil || d.overwrites != 4 {
			t.Errorf("with %d bytes done: %v, %d steps", done, err, d.overwrites)
		}
	}
}
