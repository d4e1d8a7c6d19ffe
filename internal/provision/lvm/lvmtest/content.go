package lvmtest

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"berth.dev/berth/internal/provision/lvm"
)

// What is written to a volume stands on the extents that it has, and is there still when
// they are another one's. A thin volume's is its own.

// where returns the place of a byte of a volume, and what it is a place in. A volume has
// the lowest extents that are free when it is first asked for.
func (g *Group) where(v *Volume, offset int64) (content map[int64]byte, at int64) {
	if v.Pool != "" {
		if v.own == nil {
			v.own = map[int64]byte{}
		}
		return v.own, offset
	}
	if g.content == nil {
		g.content = map[int64]byte{}
	}
	for int64(len(v.at)) < v.Extents {
		v.at = append(v.at, g.lowestFree())
	}
	return g.content, v.at[offset/Unit]*Unit + offset%Unit
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

// zero makes a range of a volume zeros.
func (g *Group) zero(v *Volume, offset, length int64) {
	for begin := offset; begin < offset+length; {
		end := min(begin/Unit*Unit+Unit, offset+length)
		content, from := g.where(v, begin)
		for at := range content {
			if at >= from && at < from+end-begin {
				delete(content, at)
			}
		}
		begin = end
	}
}

// WriteAt puts a text on a device.
func (h *Host) WriteAt(path, text string, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, v := h.device(path)
	for i := range len(text) {
		content, at := g.where(v, offset+int64(i))
		content[at] = text[i]
	}
}

// ReadAt returns so many bytes of a device.
func (h *Host) ReadAt(path string, bytes int, offset int64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, v := h.device(path)
	b := make([]byte, bytes)
	for i := range b {
		content, at := g.where(v, offset+int64(i))
		b[i] = content[at]
	}
	return string(b)
}

// Opens implements lvm.Devices.
func (h *Host) Opens(name string) (opened int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.groups {
		for id, v := range g.Volumes {
			if !v.Active || doubled(g.Name)+"-"+doubled(id) != name {
				continue
			}
			for _, open := range []bool{v.Open, v.held} {
				if open {
					opened++
				}
			}
		}
	}
	return opened, nil
}

// held is a device that is open alone.
type held struct {
	h      *Host
	path   string
	volume *Volume
}

// Hold implements lvm.Devices.
func (h *Host) Hold(path string) (lvm.Holder, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, v := h.device(path)
	switch {
	case v == nil || !v.Active:
		return nil, fmt.Errorf("opening %s: no such device", path)
	case v.held:
		return nil, lvm.ErrBusy
	}
	v.held = true
	return &held{h, path, v}, nil
}

// Close implements lvm.Holder.
func (d *held) Close() error {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.volume.held = false
	return nil
}

// Mapping implements lvm.Holder.
func (d *held) Mapping() (name, uuid string, err error) { return d.h.Mapping(d.path) }

// Size implements lvm.Holder.
func (d *held) Size() (int64, error) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.volume.Extents * Unit, nil
}

// ReadAt implements lvm.Holder.
func (d *held) ReadAt(b []byte, offset int64) (int, error) {
	size, err := d.Size()
	if offset+int64(len(b)) > size {
		return 0, io.EOF
	}
	return copy(b, d.h.ReadAt(d.path, len(b), offset)), err
}

// Discard implements lvm.Holder: the disk does not vouch for zeros.
func (d *held) Discard(int64, int64) error { return errors.ErrUnsupported }

// Overwrite implements lvm.Holder.
func (d *held) Overwrite(offset, length int64) error {
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
		g.zero(v, offset, length)
		return nil
	}
	d.h.mu.Lock()
	wiping := d.h.Wiping
	d.h.mu.Unlock()
	if wiping != nil {
		return wiping(d.path, offset, length, do)
	}
	return do()
}
