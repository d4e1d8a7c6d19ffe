package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// The layout that LVM gives a physical volume: a label in the second sector,
// then a metadata area, then data.
const (
	sector     = 512
	labelAt    = sector
	areaAt     = 4096
	dataAt     = 1 << 20
	areaSize   = dataAt - areaAt
	half       = (areaSize - sector) / 2 / sector * sector
	slotAt     = 40
	areaMagic  = " LVM2 x[5A%r0N*>"
	areaMarkAt = 4
)

var errNoMetadata = errors.New("no metadata")

// file is a device with metadata.
type file interface {
	io.ReaderAt
	io.WriterAt
}

// writeLabel makes a physical volume of a device.
func writeLabel(f io.WriterAt, size int64) error {
	head := make([]byte, areaAt)
	label := head[labelAt:]
	copy(label, "LABELONE")
	binary.LittleEndian.PutUint64(label[8:], 1)
	binary.LittleEndian.PutUint32(label[20:], 32)
	copy(label[24:], "LVM2 001")
	binary.LittleEndian.PutUint64(label[64:], uint64(size)) //nolint:gosec // a size
	areas := label[72:]
	binary.LittleEndian.PutUint64(areas[0:], dataAt) // to the end, of which the size of 0 says so
	binary.LittleEndian.PutUint64(areas[32:], areaAt)
	binary.LittleEndian.PutUint64(areas[40:], areaSize)
	if _, err := f.WriteAt(head, 0); err != nil {
		return fmt.Errorf("writing label: %w", err)
	}
	return nil
}

// readGroup returns the group whose physical volume f is.
func readGroup(f io.ReaderAt) (*lvmtest.Group, error) {
	head := make([]byte, areaAt+sector)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, errNoMetadata
	}
	header := head[areaAt:]
	if string(head[labelAt:labelAt+8]) != "LABELONE" || string(header[areaMarkAt:areaMarkAt+len(areaMagic)]) != areaMagic {
		return nil, errNoMetadata
	}
	offset, size := slot(header)
	if size <= 0 || offset < sector || offset+size > areaSize {
		return nil, errNoMetadata
	}
	text := make([]byte, size)
	if _, err := f.ReadAt(text, areaAt+offset); err != nil {
		return nil, fmt.Errorf("reading metadata: %w", err)
	}
	_, line, found := bytes.Cut(text, []byte("\n# "))
	if !found {
		return nil, errNoMetadata
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	g := &lvmtest.Group{}
	if err := json.Unmarshal(line, g); err != nil {
		return nil, fmt.Errorf("reading metadata: %w", err)
	}
	return g, nil
}

func slot(header []byte) (offset, size int64) {
	return int64(binary.LittleEndian.Uint64(header[slotAt:])), int64(binary.LittleEndian.Uint64(header[slotAt+8:])) //nolint:gosec // checked
}

// writeGroup writes the metadata beside the current one, then makes it current.
func writeGroup(f file, g *lvmtest.Group) error {
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "%s {\nseqno = %d\nformat = \"lvm2\"\n# %s\n}\n", g.Name, g.Seqno, data)
	if len(text) > half {
		return fmt.Errorf("%d bytes of metadata do not fit", len(text))
	}
	header := make([]byte, sector)
	if _, err := f.ReadAt(header, areaAt); err != nil {
		return fmt.Errorf("reading metadata header: %w", err)
	}
	next := int64(sector)
	if offset, _ := slot(header); offset == next {
		next += half
	}
	if _, err := f.WriteAt(text, areaAt+next); err != nil {
		return fmt.Errorf("writing metadata: %w", err)
	}
	copy(header[areaMarkAt:], areaMagic)
	binary.LittleEndian.PutUint64(header[slotAt:], uint64(next))
	binary.LittleEndian.PutUint64(header[slotAt+8:], uint64(len(text)))
	if _, err := f.WriteAt(header, areaAt); err != nil {
		return fmt.Errorf("writing metadata header: %w", err)
	}
	return nil
}
