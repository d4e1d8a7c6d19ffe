package gpt

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"unicode/utf16"
)

// Image is the beginning and the end of a disk, as much as the tables may take.
type Image struct {
	Geometry
	Head, Tail []byte
}

// Table is one of the two tables of a disk.
type Table struct {
	// Valid says that header and entries are there and their checksums are right.
	Valid bool
	// Partitions of a valid table, in its order.
	Partitions []Partition
	// Entry is the entry in the place of the first one, whatever the header says; nil if
	// it is not used.
	Entry *Partition
}

// Primary reads the table at the beginning of the disk.
func (i Image) Primary() Table { return i.table(1, 2) }

// Backup reads the table at the end of the disk.
func (i Image) Backup() Table { return i.table(i.Size/i.Block-1, i.backupEntries()) }

// Has says whether the disk already holds the data of a write.
func (i Image) Has(w Write) bool {
	return bytes.Equal(i.at(w.Offset, int64(len(w.Data))), w.Data)
}

// at returns a part of the disk, nil if it is not all in the image.
func (i Image) at(offset, length int64) []byte {
	tail := offset - (i.Size - int64(len(i.Tail)))
	switch {
	case offset < 0 || length < 0 || length > i.Size:
		return nil
	case offset+length <= int64(len(i.Head)):
		return i.Head[offset : offset+length]
	case tail >= 0 && tail+length <= int64(len(i.Tail)):
		return i.Tail[tail : tail+length]
	default:
		return nil
	}
}

func (i Image) table(header, entries int64) Table {
	var t Table
	if b := i.at(entries*i.Block, entrySize); b != nil {
		t.Entry = decode(b)
	}
	t.Partitions, t.Valid = i.partitions(header)
	return t
}

// partitions reads a table by its header, as any program would.
func (i Image) partitions(header int64) ([]Partition, bool) {
	b := i.at(header*i.Block, i.Block)
	if b == nil || string(b[:8]) != signature {
		return nil, false
	}
	le := binary.LittleEndian
	size := int64(le.Uint32(b[12:]))
	if size < headerSize || size > i.Block || int64(le.Uint64(b[24:])) != header { //nolint:gosec // negative is refused by at
		return nil, false
	}
	sum := le.Uint32(b[16:])
	b = bytes.Clone(b[:size])
	le.PutUint32(b[16:], 0)
	if crc32.ChecksumIEEE(b) != sum {
		return nil, false
	}
	count, each, at := int64(le.Uint32(b[80:])), int64(le.Uint32(b[84:])), int64(le.Uint64(b[72:])) //nolint:gosec // as above
	if each < entrySize || each > i.Block || count > 1024 || at <= 0 || at > i.Size/i.Block {
		return nil, false
	}
	array := i.at(at*i.Block, count*each)
	if array == nil || crc32.ChecksumIEEE(array) != le.Uint32(b[88:]) {
		return nil, false
	}
	var used []Partition
	for ; len(array) > 0; array = array[each:] {
		if p := decode(array); p != nil {
			used = append(used, *p)
		}
	}
	return used, true
}

// decode reads an entry, nil if it is not used.
func decode(b []byte) *Partition {
	le := binary.LittleEndian
	p := Partition{
		Type: GUID(b[:16]), ID: GUID(b[16:32]), Attributes: le.Uint64(b[48:]),
		First: int64(le.Uint64(b[32:])), Last: int64(le.Uint64(b[40:])), //nolint:gosec // callers compare them
	}
	if p.Type == (GUID{}) {
		return nil
	}
	var name []uint16
	for i := range nameUnits {
		name = append(name, le.Uint16(b[56+2*i:]))
	}
	p.Name = strings.TrimRight(string(utf16.Decode(name)), "\x00")
	return &p
}

// Clear puts zeros where a write goes.
func (i Image) Clear(w Write) { clear(i.at(w.Offset, int64(len(w.Data)))) }
