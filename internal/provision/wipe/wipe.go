package wipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"berth.dev/berth/internal/provision"
)

// Device is what is wiped. What it was told is on it for good when a method returns.
type Device interface {
	// ReadAt reads what is on the device, past every cache.
	io.ReaderAt

	// Discard lets go of what stores a range. The error is errors.ErrUnsupported where
	// the kernel does not vouch that the range reads as zeros then.
	Discard(offset, length int64) error

	// Overwrite makes a range zeros, by the device itself if it can.
	Overwrite(offset, length int64) error
}

// ErrNotZeros says that a device did not do what it said.
var ErrNotZeros = errors.New("the device says that it was overwritten with zeros, and it was not")

// Range of a device in bytes, and how much of it is wiped at a time.
type Range struct {
	Offset, Length, Step int64
	// Done is how much of it, from its beginning, need not be wiped again: what Progress was
	// told last that lasts. What is out of range counts as nothing.
	Done int64
}

// Progress is told how much of a range is done, from its beginning, and whether that lasts: a
// later attempt may go on behind it. Only what was overwritten and read back lasts, since a
// discard takes no time, and is worth nothing once a later one turns out to be a lie. An error
// ends the wiping.
type Progress func(done int64, lasts bool) error

// Do wipes a range. Between the steps it looks whether ctx ended, and tells progress. A
// sample of each step is read back. A device that says it has discarded and did not, or that
// does so in places only, is overwritten from the beginning, for what was discarded before is
// worth nothing either; one that
// does not even do that is an error, and nothing lasts then. What was begun by overwriting is
// ended so. Whatever the error, all of the range that does not last has to be wiped again.
func Do(ctx context.Context, d Device, how provision.Wipe, r Range, progress Progress) error {
	if r.Done < 0 || r.Done > r.Length {
		r.Done = 0
	}
	erase, discards := d.Overwrite, how != provision.WipeZero && r.Done == 0
	if discards {
		erase = d.Discard
	}
	for done := r.Done; done < r.Length; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		length := min(r.Step, r.Length-done)
		err := step(d, erase, r.Offset+done, length)
		switch {
		case discards && (errors.Is(err, ErrNotZeros) || errors.Is(err, errors.ErrUnsupported)):
			erase, discards, done = d.Overwrite, false, 0
			continue
		case errors.Is(err, ErrNotZeros):
			return errors.Join(failed(err, r.Offset+done, length), progress(0, true))
		case err != nil:
			return failed(err, r.Offset+done, length)
		}
		done += length
		if err := progress(done, !discards && done < r.Length); err != nil {
			return fmt.Errorf("recording the progress at %d bytes: %w", done, err)
		}
	}
	return nil
}

func failed(err error, offset, length int64) error {
	return fmt.Errorf("overwriting %d bytes at %d: %w", length, offset, err)
}

func step(d Device, erase func(offset, length int64) error, offset, length int64) error {
	if err := erase(offset, length); err != nil {
		return err
	}
	return check(d, offset, length)
}

const sampleSize = 64 << 10

// check reads the beginning and the end of a range back.
func check(d Device, offset, length int64) error {
	sample := make([]byte, min(sampleSize, length))
	for _, at := range []int64{offset, offset + length - int64(len(sample))} {
		if _, err := d.ReadAt(sample, at); err != nil {
			return fmt.Errorf("reading it back: %w", err)
		}
		if len(bytes.Trim(sample, "\x00")) > 0 {
			return ErrNotZeros
		}
	}
	return nil
}
