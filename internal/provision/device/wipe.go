package device

import (
	"context"
	"errors"
	"fmt"
)

var errNotZeros = errors.New("the disk says that it was overwritten with zeros, and it was not")

// wipe makes a disk empty that a deleted volume left.
func (p *Provisioner) wipe(ctx context.Context, pool string, w *wipe) {
	err := p.wipeHeld(ctx, pool, w)
	p.state.with(pool, func(d *disk) {
		// It may be another disk's turn, if that one was pulled.
		if w.failed = err; d != nil && d.wipe == w && (err == nil || ctx.Err() != nil) {
			d.wipe = nil
		}
	})
	p.signal()
}

// wipeHeld holds the disk to the end, which keeps everybody else away. Operations on
// it do not wait for that: they see what the disk is.
func (p *Provisioner) wipeHeld(ctx context.Context, pool string, w *wipe) error {
	unlock, err := p.pools.Lock(ctx, pool)
	if err != nil {
		return err
	}
	h, err := p.hold(pool)
	unlock()
	if err != nil {
		return err
	}
	defer h.release()
	r := h.content.record
	if h.content.kind != ours || h.content.problem != "" || r.status != wiping {
		return nil // others were here; release makes it known
	}
	if err := h.deactivate(); err != nil { // a restart of the machine brought them back
		return err
	}
	start, length := r.extent(h.disk.Geometry)
	for done := int64(0); done < length; {
		if ctx.Err() != nil {
			return context.Cause(ctx) // the table still says what is to be done
		}
		step := min(p.config.WipeStep, length-done)
		if err := h.zero(start+done, step); err != nil {
			return fmt.Errorf("overwriting %d bytes at %d: %w", step, start+done, err)
		}
		done += step
		p.state.with(pool, func(*disk) { w.percent = done * 100 / length })
	}
	return h.write(nil)
}

// zero overwrites a range and reads a sample of it back.
func (h *held) zero(offset, length int64) error {
	if err := h.Zero(offset, length); err != nil {
		return err
	}
	const size = 64 << 10
	sample := make([]byte, min(size, length))
	for _, at := range []int64{offset, offset + length - int64(len(sample))} {
		if _, err := h.ReadAt(sample, at); err != nil {
			return fmt.Errorf("reading it back: %w", err)
		}
		if !zeros(sample) {
			return errNotZeros
		}
	}
	return nil
}
