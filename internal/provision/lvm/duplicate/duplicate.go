package duplicate

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"berth.dev/berth/internal/provision/blockdev"
)

// Target is what is written.
type Target interface {
	// WriteAt writes past every cache. The data begins in memory where a block may begin.
	io.WriterAt

	// Zero makes a range zeros, by the device itself if it can.
	Zero(offset, length int64) error

	// Sync returns when all that was written is on the device for good.
	Sync() error
}

// Do writes the first bytes of a source to the beginning of a target, a step at a time,
// and returns when they are there for good. Between the steps it looks whether ctx
// ended. Zeros are written too: nothing says what the target held before. Whatever the
// error, all has to be written again.
func Do(ctx context.Context, to Target, from io.ReaderAt, length, step int64) error {
	step = min(step, length)
	buffer, zeros := blockdev.Buffer(int(step)), make([]byte, step)
	for at := int64(0); at < length; at += step {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		block := buffer[:min(step, length-at)]
		if _, err := from.ReadAt(block, at); err != nil {
			return fmt.Errorf("reading %d bytes at %d: %w", len(block), at, err)
		}
		if err := write(to, block, zeros, at); err != nil {
			return fmt.Errorf("writing %d bytes at %d: %w", len(block), at, err)
		}
	}
	if err := to.Sync(); err != nil {
		return fmt.Errorf("waiting until what was written is on the disk: %w", err)
	}
	return nil
}

func write(to Target, block, zeros []byte, at int64) error {
	if bytes.Equal(block, zeros[:len(block)]) {
		return to.Zero(at, int64(len(block)))
	}
	_, err := to.WriteAt(block, at)
	return err
}
