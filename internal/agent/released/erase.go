package released

import (
	"cmp"
	"context"
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/attached"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/wipe"
)

// step is how many bytes are wiped at a time. The disk is looked at before each.
const step = 256 << 20

// erase wipes the disk, from where it is wiped, and records that.
func (w *Wiper) erase(ctx context.Context, l *v1alpha1.LUN) error {
	e := &eraser{Wiper: w, ctx: ctx, lun: l, disk: diskOf(l), key: keyOf(l)}
	content, err := e.proved()
	if err != nil {
		return err
	}
	e.content = content
	size, err := w.c.Machine.Size(content)
	if err != nil {
		return err
	}
	if err := e.overwrite(size); err != nil {
		return err
	}
	// Nothing on this node has the device open any more, and all is on the disk.
	if err := w.c.Disks.Flush(ctx, e.disk); err != nil {
		return err
	}
	if err := e.prove(); err != nil {
		return err
	}
	switch now, err := w.c.Machine.Size(content); {
	case err != nil:
		return err
	case now != size:
		return fmt.Errorf("%w: the disk had %d bytes, and has %d: it is wiped again", provision.ErrUnavailable, size, now)
	}
	return w.change(ctx, l, goesOn, func(n *v1alpha1.LUNWipe) { n.Done, n.Outcome, n.Problem = size, v1alpha1.LUNWiped, "" })
}

// eraser is one attempt. It is the device that package wipe writes to.
type eraser struct {
	*Wiper
	ctx     context.Context //nolint:containedctx // of the attempt: the methods of wipe.Device have none
	lun     *v1alpha1.LUN
	disk    shared.Disk
	key     ownership.RawKey
	content provision.Content
	device  Device
}

var _ wipe.Device = (*eraser)(nil)

// overwrite wipes all bytes, and records its progress.
func (e *eraser) overwrite(size int64) (err error) {
	if e.device, err = e.c.Machine.Hold(e.content); err != nil {
		return err
	}
	defer func() {
		if closed := e.device.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%w: closing the disk: %w", provision.ErrUnavailable, closed)
		}
	}()
	if err := e.whose(size); err != nil {
		return err
	}
	whole := wipe.Range{Length: size, Step: cmp.Or(e.c.Step, step), Done: e.lun.Status.Wipe.Done}
	marks := wipe.Marks{Bytes: cmp.Or(e.c.Marks, wipe.MarkBytes), Interval: wipe.MarkInterval}
	marks.From(whole.Done, e.c.Clock.Now())
	return wipe.Do(e.ctx, e, provision.WipeDiscard, whole, func(done int64, lasts bool) error {
		if !lasts || !marks.Due(done, e.c.Clock.Now()) {
			return nil
		}
		return e.change(e.ctx, e.lun, goesOn, func(n *v1alpha1.LUNWipe) { n.Done, n.Problem = done, "" })
	})
}

// whose makes sure that the disk was the volume's, before the first byte is written. A LUN may name a disk by
// mistake: then nothing that is on it came from the volume, because no node formats a disk that is not blank. A
// raw disk has no such sign; pods were given it as it was. What is proved is recorded first: once the wipe has
// begun, the disk shows nothing any more.
func (e *eraser) whose(size int64) error {
	w := e.lun.Status.Wipe
	if w.Proved || w.Mode == v1alpha1.Block {
		return nil
	}
	known := make([]lineage.Epoch, 0, len(w.Keys))
	for i := range w.Keys {
		known = append(known, epochOf(w.Keys[i].Epoch))
	}
	stranger, err := attached.Stranger(e.device, size, e.disk.Volume, known)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	case stranger != "":
		return &strangerError{stranger}
	}
	return e.change(e.ctx, e.lun, goesOn, func(n *v1alpha1.LUNWipe) { n.Proved = true })
}

// strangerError: the disk does not show that it was the volume's.
type strangerError struct{ has string }

func (s *strangerError) Error() string {
	return fmt.Sprintf("the disk has %s, which the volume did not put there: it is not wiped. If that may be lost, wipe the disk (blkdiscard --zeroout), delete this LUN, and declare it anew", s.has)
}

// ReadAt implements wipe.Device.
func (e *eraser) ReadAt(b []byte, at int64) (int, error) { return e.device.ReadAt(b, at) }

// Discard implements wipe.Device.
func (e *eraser) Discard(offset, length int64) error {
	if err := e.prove(); err != nil {
		return err
	}
	return e.device.Discard(offset, length)
}

// Overwrite implements wipe.Device.
func (e *eraser) Overwrite(offset, length int64) error {
	if err := e.prove(); err != nil {
		return err
	}
	return e.device.Overwrite(offset, length)
}

// proved returns the device, if the disk's provisioner shows that it is the disk, and that the disk takes the
// writes of this session alone.
func (e *eraser) proved() (provision.Content, error) {
	v, err := e.c.Disks.Look(e.ctx, e.disk)
	switch {
	case err != nil:
		return provision.Content{}, err
	case !holds(v.Disk, e.key):
		return provision.Content{}, fmt.Errorf("%w: the disk is not reserved for this wipe any more", errOverruled)
	}
	return v.Content, nil
}

// prove returns nil if the device that is open is still the disk, and reserved for this wipe.
func (e *eraser) prove() error {
	now, err := e.proved()
	if err == nil && now != e.content {
		err = fmt.Errorf("%w: the disk is another device now", errOverruled)
	}
	return err
}
