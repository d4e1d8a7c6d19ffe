package wipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"berth.dev/berth/internal/provision"
)

// Device is the device to wipe. A change is durable on it when a method returns.
type Device interface {
	// ReadAt reads from the device itself, past every cache.
	io.ReaderAt

	// Discard discards a range. The error is errors.ErrUnsupported where the kernel does
	// not guarantee that the range reads as zeros then.
	Discard(offset, length int64) error

	// Overwrite fills a range with zeros. The device does it itself if it can.
	Overwrite(offset, length int64) error
}

// ErrNotZeros says that a range does not read as zeros although the device reported success.
var ErrNotZeros = errors.New("the device says that it was overwritten with zeros, and it was not")

// Range of a device in bytes, and how much of it is wiped at a time.
type Range struct {
	Offset, Length, Step int64
	// Done is how many bytes, from its beginning, need not be wiped again: the latest number
	// that Progress received as lasting. A number out of range counts as 0.
	Done int64
}

// Progress receives how many bytes of a range are done, from its beginning, and whether that
// lasts: then a later attempt may continue behind them. Only bytes that were overwritten and
// read back count as lasting. A discard takes no time to repeat, and proves nothing once a
// later discard turns out to have done nothing. An error ends the wiping.
type Progress func(done int64, lasts bool) error

// Do wipes a range. Between the steps it checks whether ctx has ended, and calls progress. It
// reads back a sample of each step. If a discard did nothing or is not supported, even only in
// places, Do overwrites the range from the beginning, since the discards before it prove
// nothing either. If an overwrite did nothing, Do returns ErrNotZeros, and nothing lasts then.
// An attempt that continues behind Done bytes overwrites, too. After any error, all of the
// range that does not last has to be wiped again.
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
