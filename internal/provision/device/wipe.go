package device

import (
	"context"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/wipe"
	"berth.dev/berth/internal/run"
)

// wiper wipes the disks of deleted volumes.
type wiper struct{ *reader }

// wipeAll wipes the disks of all deleted volumes, all at the same time.
func (w *wiper) wipeAll(ctx context.Context, tasks *run.Tasks) {
	for {
		for pool, a := range w.state.toWipe() {
			tasks.Go(func() { w.wipe(ctx, pool, a) })
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wipes:
		}
	}
}

// wipe makes the disk of a deleted volume empty.
func (w *wiper) wipe(ctx context.Context, pool string, a *attempt) {
	err := w.wipeHeld(ctx, pool, a)
	w.state.With(pool, func(d *disk) {
		// The pool may have another disk by now, if this one was pulled.
		if a.failed = err; d != nil && d.wipe == a && (err == nil || ctx.Err() != nil) {
			d.wipe = nil
		}
	})
	w.changed.Set()
}

// wipeHeld has the disk open exclusively to the end, which keeps all others away. Operations
// on the disk do not wait for that: they see that it is being wiped.
func (w *wiper) wipeHeld(ctx context.Context, pool string, a *attempt) error {
	unlock, err := w.pools.Lock(ctx, pool)
	if err != nil {
		return err
	}
	h, err := w.hold(pool)
	unlock()
	if err != nil {
		return err
	}
	defer h.release()
	r := h.content.record
	if h.content.kind != ours || h.content.problem != "" || r.status != wiping {
		return nil // others changed the disk; release takes that in
	}
	if err := h.deactivate(); err != nil { // a restart of the machine brought the partitions back
		return err
	}
	start, length := r.extent(h.disk.Geometry)
	whole := wipe.Range{Offset: start, Length: length, Step: w.config.WipeStep, Done: partsOf(length, r.wiped)}
	marks := wipe.Marks{Bytes: w.config.WipeRecord, Interval: wipe.MarkInterval}
	marks.From(whole.Done, w.config.Now())
	err = wipe.Do(ctx, h, provision.WipeDiscard, whole, func(done int64, lasts bool) error {
		w.state.With(pool, func(*disk) { a.percent = done * 100 / length })
		if !lasts || !marks.Due(done, w.config.Now()) {
			return nil
		}
		return h.rewrite(r.wipedTo(done, length))
	})
	if err != nil { // the table still says that the disk is to be wiped
		return err
	}
	return h.write(nil)
}

// rewrite writes another record of the volume to its disk. The next write builds on that record.
func (h *held) rewrite(r record) error {
	if err := h.write(&r); err != nil {
		return err
	}
	h.content.record, h.content.complete = r, true
	return nil
}
