package gpt

import (
	"encoding/binary"
	"hash/crc32"
	"unicode/utf16"
)

const (
	signature  = "EFI PART"
	revision   = 0x00010000
	headerSize = 92
	entrySize  = 128
	entries    = 128
	nameUnits  = 36
	mebibyte   = 1 << 20
)

// Geometry of a disk: its size and that of its logical blocks, in bytes.
type Geometry struct{ Size, Block int64 }

// Partition is one entry of a table. First and Last are its blocks, both included.
type Partition struct {
	Type, ID    GUID
	First, Last int64
	Attributes  uint64
	Name        string
}

// Write is one block of a table and its offset on the disk, in bytes. A block is written
// whole or not at all.
type Write struct {
	Offset int64
	Data   []byte
}

// Whole returns the blocks of the one partition that takes all of the disk but its
// first and last MiB, aligned to MiB; last is less than first if the disk is too small.
func (g Geometry) Whole() (first, last int64) {
	return mebibyte / g.Block, (g.Size-mebibyte)/mebibyte*mebibyte/g.Block - 1
}

// Writes returns the five blocks of a table with one partition in the order in which they
// must be written: backup entry, backup header, primary entry, protective master boot
// record, primary header. All other blocks outside of the partition are zeros.
func (g Geometry) Writes(p Partition) []Write {
	array := make([]byte, g.arrayBlocks()*g.Block)
	p.encode(array)
	end := g.Size/g.Block - 1
	at := func(block int64, data []byte) Write { return Write{Offset: block * g.Block, Data: data} }
	return []Write{
		at(g.backupEntries(), array[:g.Block]),
		at(end, g.header(p, array, end, 1, g.backupEntries())),
		at(2, array[:g.Block]),
		at(0, g.protective()),
		at(1, g.header(p, array, 1, end, 2)),
	}
}

// arrayBlocks is how many blocks the entries take.
func (g Geometry) arrayBlocks() int64 { return entries * entrySize / g.Block }

func (g Geometry) backupEntries() int64 { return g.Size/g.Block - 1 - g.arrayBlocks() }

func (p Partition) encode(b []byte) {
	copy(b, p.Type[:])
	copy(b[16:], p.ID[:])
	le := binary.LittleEndian
	le.PutUint64(b[32:], uint64(p.First)) //nolint:gosec // blocks are counted from 0
	le.PutUint64(b[40:], uint64(p.Last))  //nolint:gosec // as above
	le.PutUint64(b[48:], p.Attributes)
	for i, unit := range utf16.Encode([]rune(p.Name)) {
		if i == nameUnits {
			break
		}
		le.PutUint16(b[56+2*i:], unit)
	}
}

func (g Geometry) header(p Partition, array []byte, own, other, entriesAt int64) []byte {
	b := make([]byte, g.Block)
	le := binary.LittleEndian
	copy(b, signature)
	le.PutUint32(b[8:], revision)
	le.PutUint32(b[12:], headerSize)
	disk := p.ID.disk()
	for i, v := range []int64{own, other, 2 + g.arrayBlocks(), g.backupEntries() - 1} {
		le.PutUint64(b[24+8*i:], uint64(v)) //nolint:gosec // as above
	}
	copy(b[56:], disk[:])
	le.PutUint64(b[72:], uint64(entriesAt)) //nolint:gosec // as above
	le.PutUint32(b[80:], entries)
	le.PutUint32(b[84:], entrySize)
	le.PutUint32(b[88:], crc32.ChecksumIEEE(array))
	le.PutUint32(b[16:], crc32.ChecksumIEEE(b[:headerSize]))
	return b
}

// protective returns a master boot record that keeps programs which know no GUID tables
// from taking the disk for empty.
func (g Geometry) protective() []byte {
	b := make([]byte, g.Block)
	entry := b[446:]
	copy(entry[1:], []byte{0, 2, 0, 0xee, 0xff, 0xff, 0xff})
	binary.LittleEndian.PutUint32(entry[8:], 1)
	binary.LittleEndian.PutUint32(entry[12:], uint32(min(g.Size/g.Block-1, 0xffffffff))) //nolint:gosec // bounded
	b[510], b[511] = 0x55, 0xaa
	return b
}
