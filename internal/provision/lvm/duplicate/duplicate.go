package duplicate

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"berth.dev/berth/internal/provision/blockdev"
)

// Target is a device that Do writes.
type Target interface {
	// WriteAt bypasses every cache. The data is aligned to blocks in memory.
	io.WriterAt

	// Zero fills a range with zeros. The device itself does it if it can.
	Zero(offset, length int64) error

	// Sync returns when all written data is durable on the device.
	Sync() error
}

// Do copies the first length bytes of a source to the beginning of a target, step bytes at a
// time, and returns when they are durable there. Between two steps it checks whether ctx has
// ended. It writes zeros, too, because the target may hold anything. After any error the
// caller must have everything written again.
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
