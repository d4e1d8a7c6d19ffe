package lvmtest

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
)

// Data that is written to a volume stays on the volume's extents, also when they belong to
// another volume later. A thin volume has content of its own.

// where returns the place of a byte of a volume, and the content that this is a place in.
func (g *Group) where(v *Volume, offset int64) (content map[int64]byte, at int64) {
	if shown := v.shown(); shown != nil {
		return shown, offset
	}
	return g.content, g.place(v)[offset/Unit]*Unit + offset%Unit
}

// place returns the extents of a volume: the lowest ones that are free at the first call.
func (g *Group) place(v *Volume) []int64 {
	if g.content == nil {
		g.content = map[int64]byte{}
	}
	for int64(len(v.at)) < v.Extents {
		v.at = append(v.at, g.lowestFree())
	}
	return v.at
}

func (g *Group) lowestFree() (extent int64) {
	for g.isTaken(extent) {
		extent++
	}
	return extent
}

func (g *Group) isTaken(extent int64) bool {
	for _, v := range g.Volumes {
		if slices.Contains(v.at, extent) {
			return true
		}
	}
	return false
}

// each calls f for every byte in a range of a volume that is not zero, with the content that the
// byte is in, its place there and its offset in the volume.
func (g *Group) each(v *Volume, offset, length int64, f func(content map[int64]byte, at, offset int64)) {
	for begin := offset; begin < offset+length; {
		end := min(begin/Unit*Unit+Unit, offset+length)
		content, from := g.where(v, begin)
		for at := range content {
			if at >= from && at < from+end-begin {
				f(content, at, begin+at-from)
			}
		}
		begin = end
	}
}

// zero fills a range of a volume with zeros.
func (g *Group) zero(v *Volume, offset, length int64) {
	g.each(v, offset, length, func(content map[int64]byte, at, offset int64) {
		g.save(v, offset)
		delete(content, at)
	})
}

// WriteAt puts a text on a device, and says whether the device is there.
func (h *Host) WriteAt(path, text string, offset int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, v := h.device(h.behind(path))
	if v == nil {
		return false
	}
	g.write(v, []byte(text), offset)
	return true
}

func (g *Group) write(v *Volume, b []byte, offset int64) {
	g.zero(v, offset, int64(len(b)))
	for i := range b {
		if b[i] != 0 {
			content, at := g.where(v, offset+int64(i))
			content[at] = b[i]
		}
	}
}

// ReadAt returns so many bytes of a device.
func (h *Host) ReadAt(path string, bytes int, offset int64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, v := h.device(h.behind(path))
	b := make([]byte, bytes)
	g.each(v, offset, int64(bytes), func(content map[int64]byte, at, place int64) { b[place-offset] = content[at] })
	return string(b)
}

// Opens implements lvm.Devices.
func (h *Host) Opens(name string) (opened int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.groups {
		for id, v := range g.Volumes {
			if !v.Active || g.mapping(id) != name {
				continue
			}
			for _, open := range []bool{v.Open, v.held} {
				if open {
					opened++
				}
			}
			opened += v.looks
		}
	}
	return opened, nil
}

// held is a device that Hold or Look opened.
type held struct {
	h       *Host
	path    string
	volume  *Volume
	release func()
}

// Hold implements lvm.Devices.
func (h *Host) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, path, err := h.proved(path, is)
	switch {
	case err != nil:
		return nil, err
	case v.ReadOnly:
		return nil, fmt.Errorf("opening %s to write it: read-only", path)
	case v.held:
		return nil, lvm.ErrBusy
	}
	v.held = true
	return &held{h, path, v, func() { v.held = false }}, nil
}

// Look implements lvm.Devices.
func (h *Host) Look(path string, is provision.Identity) (lvm.Looker, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, path, err := h.proved(path, is)
	if err != nil {
		return nil, err
	}
	v.looks++
	return &held{h, path, v, func() { v.looks-- }}, nil
}

// Close implements lvm.Holder.
func (d *held) Close() error {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.release()
	return nil
}

// Size implements lvm.Holder.
func (d *held) Size() (int64, error) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	g, v := d.h.device(d.path)
	if v != d.volume {
		return 0, errors.New("the device is gone")
	}
	return g.size(d.volume), nil
}

// ReadAt implements lvm.Holder.
func (d *held) ReadAt(b []byte, offset int64) (int, error) {
	size, err := d.Size()
	if offset+int64(len(b)) > size {
		return 0, io.EOF
	}
	d.h.mu.Lock()
	_, v := d.h.device(d.path)
	broken := v != d.volume || v.Broken
	d.h.mu.Unlock()
	if broken {
		return 0, errors.New("input/output error")
	}
	return copy(b, d.h.ReadAt(d.path, len(b), offset)), err
}

// Discard implements lvm.Holder: the disk does not promise zeros after a discard.
func (d *held) Discard(int64, int64) error { return errors.ErrUnsupported }

// Overwrite implements lvm.Holder.
func (d *held) Overwrite(offset, length int64) error {
	d.h.mu.Lock()
	wiping := d.h.Wiping
	d.h.mu.Unlock()
	return d.write(wiping, offset, length, func(g *Group) { g.zero(d.volume, offset, length) })
}

// Zero implements lvm.Holder.
func (d *held) Zero(offset, length int64) error {
	return d.copied(offset, length, func(g *Group) { g.zero(d.volume, offset, length) })
}

// WriteAt implements lvm.Holder.
func (d *held) WriteAt(b []byte, offset int64) (int, error) {
	return len(b), d.copied(offset, int64(len(b)), func(g *Group) { g.write(d.volume, b, offset) })
}

// Sync implements lvm.Holder.
func (d *held) Sync() error { return nil }

func (d *held) copied(offset, length int64, change func(*Group)) error {
	d.h.mu.Lock()
	copying := d.h.Copying
	d.h.mu.Unlock()
	return d.write(copying, offset, length, change)
}

func (d *held) write(around func(path string, offset, length int64, do func() error) error, offset, length int64, change func(*Group)) error {
	do := func() error {
		d.h.mu.Lock()
		defer d.h.mu.Unlock()
		g, v := d.h.device(d.path)
		if v != d.volume {
			return errors.New("the device is gone")
		}
		if v.Suspended {
			return errors.New("who writes waits for ever")
		}
		change(g)
		return nil
	}
	if around != nil {
		return around(d.path, offset, length, do)
	}
	return do()
}
