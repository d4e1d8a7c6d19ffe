package writelog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	magic   = 0x6a736677736872
	version = 1

	flagDiscard = 1 << 2
	flagMark    = 1 << 3

	// entryHead is how long the description of an entry is.
	entryHead = 32
	// What a log for a test never has more of.
	maxEntries    = 1 << 20
	maxSectorSize = 1 << 16
	maxEntrySize  = 64 << 20
)

// ErrFormat says that something is no log.
var ErrFormat = errors.New("not a log of writes")

// Entry is a write, or a mark.
type Entry struct {
	// Offset of the write in bytes.
	Offset int64
	// Data that was written; empty for a mark, and for a mere flush.
	Data []byte
	// Discarded bytes, from Offset on. They may read as anything, and count as zeros.
	Discarded int64
	// Mark is the name of a mark.
	Mark string
}

// Writes says whether the entry changes what is on the device.
func (e Entry) Writes() bool { return len(e.Data) > 0 || e.Discarded > 0 }

// Apply does to an image what the entry did to the device.
func (e Entry) Apply(image []byte) error {
	end := e.Offset + int64(len(e.Data)) + e.Discarded
	if e.Offset < 0 || end > int64(len(image)) {
		return fmt.Errorf("%w: a write from %d to %d of a device of %d bytes", ErrFormat, e.Offset, end, len(image))
	}
	copy(image[e.Offset:], e.Data)
	clear(image[e.Offset+int64(len(e.Data)) : end])
	return nil
}

// Read reads a log whole.
func Read(r io.ReaderAt) ([]Entry, error) {
	head := make([]byte, 28)
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("reading the beginning of the log: %w", err)
	}
	le := binary.LittleEndian
	count, sector := le.Uint64(head[16:]), int64(le.Uint32(head[24:]))
	if le.Uint64(head) != magic || le.Uint64(head[8:]) != version || count > maxEntries || sector < 512 || sector > maxSectorSize {
		return nil, fmt.Errorf("%w: it begins with %x", ErrFormat, head)
	}
	var entries []Entry
	for at := sector; uint64(len(entries)) < count; {
		e, length, err := readEntry(r, at, sector)
		if err != nil {
			return nil, fmt.Errorf("reading entry %d of %d: %w", len(entries)+1, count, err)
		}
		entries = append(entries, e)
		at += length
	}
	return entries, nil
}

// readEntry returns an entry and how long it is in the log.
func readEntry(r io.ReaderAt, at, sector int64) (e Entry, length int64, err error) {
	block := make([]byte, sector)
	if _, err := r.ReadAt(block, at); err != nil {
		return e, 0, err
	}
	le := binary.LittleEndian
	where, sectors, flags, size := le.Uint64(block), le.Uint64(block[8:]), le.Uint64(block[16:]), le.Uint64(block[24:])
	if where > 1<<40 || sectors > 1<<40 || size > maxEntrySize {
		return e, 0, fmt.Errorf("%w: an entry begins with %x", ErrFormat, block[:entryHead])
	}
	e.Offset = int64(where) * sector
	written := int64(sectors) * sector
	switch {
	case flags&flagMark != 0:
		if size > uint64(sector-entryHead) {
			return e, 0, fmt.Errorf("%w: a mark of %d bytes", ErrFormat, size)
		}
		e.Mark = string(bytes.TrimRight(block[entryHead:entryHead+size], "\x00"))
		return e, sector, nil
	case flags&flagDiscard != 0:
		e.Discarded = written
		return e, sector, nil
	case written > maxEntrySize:
		return e, 0, fmt.Errorf("%w: a write of %d bytes", ErrFormat, written)
	}
	e.Data = make([]byte, written)
	if written == 0 {
		return e, sector, nil
	}
	_, err = r.ReadAt(e.Data, at+sector)
	return e, sector + written, err
}
