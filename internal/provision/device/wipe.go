package device

import (
	"context"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/wipe"
)

// wipe makes a disk empty that a deleted volume left.
func (p *Provisioner) wipe(ctx context.Context, pool string, w *attempt) {
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
func (p *Provisioner) wipeHeld(ctx context.Context, pool string, w *attempt) error {
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
	whole := wipe.Range{Offset: start, Length: length, Step: p.config.WipeStep, Done: partsOf(length, r.wiped)}
	marks := wipe.Marks{Bytes: p.config.WipeRecord, Interval: wipe.MarkInterval}
	marks.From(whole.Done, p.config.Now())
	err = wipe.Do(ctx, h, provision.WipeDiscard, whole, func(done int64, lasts bool) error {
		p.state.with(pool, func(*disk) { w.percent = done * 100 / length })
		if !lasts || !marks.Due(done, p.config.Now()) {
			return nil
		}
		return h.rewrite(r.wipedTo(done, length))
	})
	if err != nil { // the table still says what is to be done
		return err
	}
	return h.write(nil)
}

// rewrite brings the disk to another record of its volume, on which the next write builds.
func (h *held) rewrite(r record) error {
	if h.content.complete && h.content.record == r {
		return nil
	}
	if err := h.write(&r); err != nil {
		return err
	}
	h.content.record, h.content.complete = r, true
	return nil
}
