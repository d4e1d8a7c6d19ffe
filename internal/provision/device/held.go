package device

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/reading"
)

// held is a disk that is opened exclusively, with its present content.
type held struct {
	r    *reader
	pool string
	Holder
	disk    Disk
	content content
}

// hold opens a disk exclusively and reads it. The kernel lets only one opener at a time
// have it. release closes it.
func (r *reader) hold(pool string) (*held, error) {
	d, err := r.present(pool)
	if err != nil {
		return nil, err
	}
	holder, err := r.config.Disks.Hold(d.Name)
	switch {
	case errors.Is(err, ErrBusy):
		return nil, fmt.Errorf("%w: something on disk %s is mounted or held: lsblk /dev/%s on the node shows what", provision.ErrInUse, d.Name, d.Name)
	case err != nil:
		return nil, fmt.Errorf("%w: opening disk %s: %w", provision.ErrUnavailable, d.Name, err)
	}
	// The name may have passed to another disk before the disk was opened. From here on it
	// cannot: the kernel keeps the name while the disk is open.
	now, ok := r.config.Disks.Find(d.Name)
	if !ok || !now.same(d) {
		holder.Close()
		return nil, fmt.Errorf("%w: another disk is named %s now", provision.ErrUnavailable, d.Name)
	}
	c, err := look(holder, now.Geometry)
	if err != nil {
		holder.Close()
		return nil, fmt.Errorf("%w: disk %s: %w", provision.ErrUnavailable, d.Name, err)
	}
	r.state.With(pool, func(d *disk) {
		if d != nil {
			d.changing = true
			d.turn++
		}
	})
	return &held{r: r, pool: pool, Holder: holder, disk: now, content: c}, nil
}

// present returns a disk as the kernel describes it now.
func (r *reader) present(pool string) (found Disk, err error) {
	if _, err := r.list(); err != nil {
		return Disk{}, err
	}
	r.state.With(pool, func(d *disk) {
		switch {
		case d == nil || d.missing:
			err = fmt.Errorf("%w: disk %s is not there", provision.ErrPoolMissing, pool)
		case len(d.twins) > 0:
			err = fmt.Errorf("%w: disk %s: %s", provision.ErrUnavailable, pool, d.trouble())
		default:
			found = d.Disk
		}
	})
	return found, err
}

// release reads the disk once more, so that the facts are true whatever became of the
// change, and closes it.
func (h *held) release() {
	asked := h.r.state.Asked()
	c, err := look(h, h.disk.Geometry)
	h.Close()
	h.learnt(asked, c, err)
	h.r.changed.Set()
	h.r.nudge()
}

// learnt takes in the content that was read from the disk in the end, and the kernel's
// description of it then.
func (h *held) learnt(asked reading.Moment, c content, err error) {
	h.r.looks.Lock()
	defer h.r.looks.Unlock()
	now, ok := h.r.config.Disks.Find(h.disk.Name)
	h.r.state.With(h.pool, func(d *disk) {
		if d == nil {
			return
		}
		d.changing = false
		if !ok || !now.same(d.Disk) || !d.same(h.disk) {
			h.r.state.Touch(d)
			return
		}
		now.Links = d.Links
		d.Disk = now
		d.learn(asked, h.r.config.Now(), c, err)
	})
}

// write writes a record to the disk, or removes its table if there is to be none.
func (h *held) write(to *record) error {
	for _, w := range h.content.writes(h.disk.Geometry, to) {
		if _, err := h.WriteAt(w.Data, w.Offset); err != nil {
			return fmt.Errorf("%w: writing the partition table of disk %s at %d: %w", provision.ErrUnavailable, h.disk.Name, w.Offset, err)
		}
	}
	return nil
}

// activate makes the kernel know the partition of a record, and no other of the disk.
func (h *held) activate(ctx context.Context, r record) error {
	if path, known := h.disk.node(r); known && len(h.disk.Partitions) == 1 {
		h.keep(ctx, path)
		return nil
	}
	if err := h.deactivate(); err != nil {
		return err
	}
	start, length := r.extent(h.disk.Geometry)
	p := Partition{Name: h.disk.partitionName(), Number: partitionNumber, Start: start, Length: length}
	if err := h.AddPartition(p); err != nil {
		return fmt.Errorf("%w: telling the kernel of partition %s: %w", provision.ErrUnavailable, p.Name, err)
	}
	h.keep(ctx, "/dev/"+p.Name)
	return nil
}

// keep holds the disk's partition open. Here it does not matter if the disk does not answer.
func (h *held) keep(ctx context.Context, path string) { _ = h.r.keep(ctx, h.pool, path) }

// deactivate makes the kernel forget the disk's partitions.
func (h *held) deactivate() error {
	<-h.r.letGo(func(pool string) bool { return pool != h.pool })
	for _, p := range h.disk.Partitions {
		switch err := h.RemovePartition(p.Number); {
		case errors.Is(err, ErrBusy):
			return fmt.Errorf("%w: %s is open", provision.ErrInUse, p.Name)
		case err != nil:
			return fmt.Errorf("%w: making the kernel forget %s: %w", provision.ErrUnavailable, p.Name, err)
		}
	}
	return nil
}

// activateLocked completes the table of a volume and makes its partition known.
func (c *changer) activateLocked(ctx context.Context, pool, id string) error {
	if _, err := c.state.find(id); err != nil {
		return err // deleted meanwhile
	}
	h, err := c.hold(pool)
	if err != nil {
		return err
	}
	defer h.release()
	is := h.content
	if is.kind != ours || is.record.id != id || is.record.status == wiping || is.problem != "" {
		return nil // others changed the disk; release takes that in
	}
	if err := h.write(&is.record); err != nil {
		return err
	}
	return h.activate(ctx, is.record)
}
